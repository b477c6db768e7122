"""Layers on vector channels; each commutes with rotations."""
