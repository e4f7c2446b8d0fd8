"""The shape of the project, held by tests."""
