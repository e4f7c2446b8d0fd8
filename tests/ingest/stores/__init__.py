"""Tests of looks at checkpoint stores of other programs."""
