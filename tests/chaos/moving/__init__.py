"""What moves.py consists of: a cluster of processes, users, kills, moves, definitions, and the verdict."""
