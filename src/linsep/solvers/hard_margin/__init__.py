"""The hard-margin support vector machine."""
