"""What migrations.py has besides splits.py: migrations, users who ask the wrong set, and the verdict."""
