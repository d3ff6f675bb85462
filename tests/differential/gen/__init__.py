"""Case generators: each module yields cases of a few topics (see ../README.md for their form)."""
import sys, pathlib  # noqa: E401

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
