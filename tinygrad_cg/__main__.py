"""`python -m tinygrad_cg`: the tour."""

import argparse
import os
import sys
from collections.abc import Sequence

import tinygrad_cg
from tinygrad_cg._tour import checking, documents, fitting, measurements, nesting, speed
from tinygrad_cg._tour.console import say
from tinygrad_cg._tour.logistic import make_problem
from tinygrad_cg_kernels.runtime.store import cache_folder

DESCRIPTION = """\
A tour of tinygrad_cg in five parts:
  1. a gradient that was NaN becomes 1.0
  2. custom gradients inside custom gradients, order by order
  3. a wrong rule: found, explained and drawn
  4. a logistic model fitted to real, unscaled data by Newton's method
  5. timings of tapes and of compiled functions, compared with NumPy and other libraries"""
PARTS = (1, 2, 3, 4, 5)
FIT = 4


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tinygrad_cg",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--part",
        metavar="N",
        type=int,
        choices=PARTS,
        action="append",
        help="show only this part; repeat the option for more parts",
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="fit your own CSV file (part 4 only): a header, numbers, one column with two classes",
    )
    parser.add_argument("--target", metavar="COLUMN", help="the column of FILE to be predicted")
    parser.add_argument(
        "--version", action="version", version=f"tinygrad_cg {tinygrad_cg.__version__}"
    )
    return parser.parse_args(argv)


def choose(options: argparse.Namespace) -> measurements.Measurements:
    """Return the user's data, or those of the package."""
    if options.data is None and options.target is None:
        return measurements.load_bundled()
    if options.data is None or options.target is None:
        raise measurements.DataError("--data FILE and --target COLUMN go together")
    return measurements.load(options.data, options.target)


def parts_of(options: argparse.Namespace) -> list[int]:
    """Return the numbers of the parts to show."""
    if options.part:
        return sorted(set(options.part))
    return [FIT] if options.data is not None else list(PARTS)


def show(parts: Sequence[int], dataset: measurements.Measurements) -> None:
    """Show these parts."""
    folder = cache_folder()
    if folder is not None and not any(folder.glob("*/*")):
        say(
            f"""This is the first run: it compiles the kernels that it needs, which takes some
            seconds. {folder} keeps them for later runs."""
        )
    for number, part in ((1, documents), (2, nesting), (3, checking)):
        if number in parts:
            part.show()
    if FIT in parts:
        fitting.show(dataset)
    if 5 in parts:
        speed.show(make_problem(dataset))
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tour; 0, 2 where the file given cannot serve, 130 where Ctrl-C ended it."""
    options = arguments(argv)
    try:
        dataset = choose(options)
        show(parts_of(options), dataset)
    except measurements.DataError as error:
        print(f"python -m tinygrad_cg: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print()
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
