"""`python -m tinygrad_cg`: the tour."""

import argparse
import os
import sys
from collections.abc import Sequence

from tinygrad_cg._tour import data, documents, fitting, nesting, speed

DESCRIPTION = """\
A tour of tinygrad_cg in four parts: a gradient that was NaN becomes 1.0; custom gradients
inside custom gradients, order by order; a logistic model fitted to real, unscaled data by
Newton's method; timings against NumPy."""


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tinygrad_cg",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="fit a CSV file of your own: a header, numbers, and one column with two classes",
    )
    parser.add_argument("--target", metavar="COLUMN", help="the column of FILE to be predicted")
    return parser.parse_args(argv)


def choose(options: argparse.Namespace) -> data.Dataset:
    """Return the user's data, or those of the package."""
    if options.data is None and options.target is None:
        return data.load_bundled()
    if options.data is None or options.target is None:
        raise data.DataError("--data FILE and --target COLUMN go together")
    return data.load(options.data, options.target)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tour; 0, or 2 where the file given cannot serve."""
    options = arguments(argv)
    try:
        dataset = choose(options)
    except data.DataError as error:
        print(f"python -m tinygrad_cg: {error}", file=sys.stderr)
        return 2
    try:
        documents.show()
        nesting.show()
        problem = fitting.show(dataset)
        speed.show(problem)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
