#!/usr/bin/env python3
"""Holds each row of `flatout bench disk` against the fio line that stands beside it.

Usage: fio_lines.py [--seconds N] [--rounds N] FLATOUT PLACE [OPTION...]

Runs `FLATOUT bench disk PLACE OPTION...`, then each row's fio line right after it, in the same place, so
often as --rounds says (once). Printed for each row: its figure and 95 % interval, fio's figure (the median
of the rounds), fio's over the row's, and whether that lies within the interval; rows without a line are
printed with the reason. --seconds shortens the lines that repeat their blocks (5 s).
"""

import argparse
import json
import re
import statistics
import subprocess
import sys


def fio(line, seconds):
    """The figure that fio prints, in bytes and in operations a second."""
    if seconds:
        line = re.sub(r"--runtime=5( |$)", f"--runtime={seconds} ", line)
    line = line.replace("fio --", "fio --output-format=json --", 1)
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    if done.returncode or "{" not in done.stdout:
        sys.exit(f"fio failed: {line}\n{done.stderr}{done.stdout}")
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][-1]
    sides = [job[side] for side in ("read", "write", "trim")]
    return sum(side["bw_bytes"] for side in sides), sum(side["iops"] for side in sides)


def name(row):
    parts = dict(row["parameters"])
    block = parts.pop("block_bytes", None)
    words = [row["id"].removeprefix("disk/")] + ([f"{block} B"] if block else [])
    threads = parts.pop("threads", 1)
    words += [str(parts.pop(key)) for key in ("engine", "caching", "extents") if key in parts]
    words += [f"depth {parts.pop('depth')}"] if parts.get("depth", 1) > 1 else []
    words += [f"{threads} threads"] if threads > 1 else []
    return " ".join(words + [str(parts[key]) for key in ("until", "pass", "directories") if key in parts])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("flatout")
    parser.add_argument("place")
    own, options = parser.parse_known_args()
    command = [own.flatout, "bench", "disk", own.place, *options, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    record = json.loads(done.stdout)
    held = lines = without = 0
    for row in record["results"]:
        audit, figure, ends = row.get("audit") or {}, row.get("median"), row.get("ci95")
        line = audit.get("fio_command")
        if not line:
            print(f"{name(row):64} no line: {audit.get('fio_note', '-')}")
            without += 1
            continue
        if not figure or not ends:
            print(f"{name(row):64} no interval")
            continue
        which = 0 if row["unit"] == "bytes/s" else 1
        seen = statistics.median(fio(line, own.seconds)[which] for _ in range(own.rounds))
        holds = ends[0] <= seen <= ends[1]
        lines, held = lines + 1, held + holds
        scale = 1e6 if which == 0 else 1e3
        unit = "MB/s" if which == 0 else "k/s"
        print(f"{name(row):64} {figure / scale:8.4g} [{ends[0] / scale:.4g}, {ends[1] / scale:.4g}] {unit}"
              f"  fio {seen / scale:8.4g}  {seen / figure:.2f}  {'holds' if holds else 'does not hold'}", flush=True)
    print(f"{held} of {lines} hold; {without} rows without a line")


main()
