"""What splits.py consists of, and migrations.py for the most part: a set of six processes, users of its tenants, splits under kills, and the verdict."""
