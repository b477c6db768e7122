"""Fitting networks to data."""
