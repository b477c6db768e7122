"""Mathematics of rotations; knows no sensor."""
