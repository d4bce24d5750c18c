"""Every table of the five papers for which the data are there: ours, the paper's, and the difference.

    python -m papers.replicate --data DIR            # all of it: an hour on two cores
    python -m papers.replicate ohsumed jester        # some parts
    python -m papers.replicate --quick               # small sizes, to see that it works: at most two minutes

Files may lie in any folders below DIR. What is not there is named, with where it comes from; what needs no data runs
without.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from papers import collaborative_filtering, large_scale, letor, parse_ranking, transductive
from papers._tables import MissingDataError, Table, aligned

Tables = Iterable[Table]


@dataclass(frozen=True)
class Options:
    data: Path
    quick: bool
    later_methods: bool
    jobs: int
    figures: Path | None


@dataclass(frozen=True)
class Part:
    """One or more tables: of which paper, from which data (none: made up), and how."""

    paper: str
    source: str | None
    run: Callable[[Options], Tables]
    in_quick: bool = True


def _letor(name: str) -> Callable[[Options], Tables]:
    return lambda o: letor.run(letor.find(o.data, name), quick=o.quick, later_methods=o.later_methods)


def _transductive(name: str) -> Callable[[Options], Tables]:
    return lambda o: transductive.run(letor.find(o.data, name), quick=o.quick)


def _large(load: Callable[..., large_scale.Task]) -> Callable[[Options], Tables]:
    return lambda o: large_scale.run(load(o.data, quick=o.quick), quick=o.quick, figures=o.figures)


def _ratings(name: str, read: Callable[[Path], collaborative_filtering.Ratings]) -> Callable[[Options], Tables]:
    def run(o: Options) -> Iterator[Table]:
        cf = collaborative_filtering
        smaller = {"sizes": cf.QUICK, "groups": cf.GROUPS[2:], "methods": cf.quick_methods()} if o.quick else {}
        return cf.run(name, read(o.data), **{"sizes": cf.Sizes(), **smaller}, n_jobs=o.jobs)

    return run


_2007 = "2007, learning to rank, tables 1 to 7"
_2010 = "2010, large scale, table 1, figures 1 and 2"
PARTS = {
    "ohsumed": Part(_2007, "ohsumed", _letor("ohsumed")),
    "trec2003": Part(_2007, "trec", _letor("trec2003")),
    "trec2004": Part(_2007, "trec", _letor("trec2004")),
    "mq2008": Part("beyond the 2007 paper", "mq2008", _letor("mq2008"), in_quick=False),
    "parses": Part(
        "2007, table 8; 2008, sparse, table 1", "parses", lambda o: parse_ranking.run(o.data, quick=o.quick)
    ),
    "more-items": Part("2008, sparse, its claim", "mq2008", lambda o: parse_ranking.more_items(o.data), in_quick=False),
    "transductive-ohsumed": Part("2007, transductive (no table)", "ohsumed", _transductive("ohsumed")),
    "transductive-mq2008": Part("2007, transductive (no table)", "mq2008", _transductive("mq2008"), in_quick=False),
    "large-parses": Part(_2010, "parses", _large(large_scale.parses)),
    "large-reuters": Part(_2010, "reuters", _large(large_scale.reuters)),
    "large-rcv1": Part(_2010, "rcv1", _large(large_scale.rcv1)),
    "large-synthetic": Part("2010, its times", None, _large(large_scale.synthetic)),
    "jester": Part(
        "2013, semi-supervised pursuit, tables 1, 2, 5",
        "jester",
        _ratings("jester", collaborative_filtering.read_jester),
    ),
    "movielens": Part(
        "2013, semi-supervised pursuit, tables 3, 4",
        "movielens",
        _ratings("movielens", collaborative_filtering.read_movielens),
    ),
}


def source_text(name: str) -> str:
    """Where some data come from."""
    source = tomllib.loads((Path(__file__).parent / "data_sources.toml").read_text())[name]
    lines = [source["name"], f"from {source['address']}", *([source["size"]] if "size" in source else [])]
    if "checksum" in source:
        lines.append(f"sha256 {source['checksum']} of {source['checksum_of']}")
    return "\n".join(f"    {line}" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--data", default=os.environ.get("RANKRLS_DATA"), help="folder (default: $RANKRLS_DATA)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--later-methods", action="store_true", help="LETOR: methods that came after the paper too")
    parser.add_argument("--jobs", type=int, default=-1, help="processes for Jester and MovieLens (default: all cores)")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="draw the figures of 2010 into this folder")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}.")
    folder = Path(options.data).expanduser() if options.data else None
    if folder is not None and not folder.is_dir():
        parser.error(f"{folder} is not a folder.")
    minutes, missing = [["part", "of", "minutes"]], {}
    for name in options.parts or [name for name, part in PARTS.items() if part.in_quick or not options.quick]:
        part, start = PARTS[name], time.perf_counter()
        try:
            if part.source and folder is None:
                raise MissingDataError("no folder of data (--data DIR)")
            given = Options(folder or Path(), options.quick, options.later_methods, options.jobs, options.figures)
            for table in part.run(given):
                print(table, flush=True)
            minutes.append([name, part.paper, f"{(time.perf_counter() - start) / 60:.1f}"])
            print(f"{name}: {minutes[-1][2]} minutes", file=sys.stderr, flush=True)
        except MissingDataError as error:
            missing.setdefault(part.source, []).append(f"{name}: {error}")
            minutes.append([name, part.paper, "not run"])
    print(aligned(minutes))
    if missing:
        print("\nNot run, since the data are not there:")
    for source, found in missing.items():
        print("  " + "; ".join(found))
        print(source_text(source))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
