"""The chart: model, canvas and picture, none of which knows an app."""
