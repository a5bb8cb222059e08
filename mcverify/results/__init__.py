"""From findings to the files of a results folder and back."""
