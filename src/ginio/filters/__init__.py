"""Recursive estimators on SO(3) and SE_2(3)."""
