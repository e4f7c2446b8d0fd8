"""YAML to typed settings; an unknown key is an error with file, line and nearest name."""
