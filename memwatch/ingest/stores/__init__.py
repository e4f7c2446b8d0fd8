"""Looks at checkpoint stores of other programs: never loaded, never written, never followed out."""
