"""Tidegate with its policies in the path of every attempt."""

from functools import partial

from model import main
from tidegate_model import run

if __name__ == "__main__":
    main(partial(run, policies=True))
