"""Pure functions of estimates and truth."""
