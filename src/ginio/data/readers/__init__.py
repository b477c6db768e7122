"""One module a dataset: `list_sequences(root)` and `read(root, name)`."""
