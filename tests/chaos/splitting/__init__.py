"""What splits.py consists of: a set of six processes, users of its tenants, splits under kills, and the verdict."""
