#!/usr/bin/env python3
"""Copies by several processes where a file costs time and no CPU, as on a filesystem far away: strace
puts a delay before each fchmod (one a file) and each pwrite64 (one a range of a large file).

    far.py FLATOUT ROUNDS PLACE [TREE]

PLACE is on a filesystem in memory; TREE is `regular` or `skewed`, else both. Prints the seconds that the copy says it took, for a regular tree
(30 directories of 40 empty files) by 1, 2 and 4 processes, and for a skewed one (a directory of 900
empty files, a file of 512 MiB, 60 files elsewhere) by 1 and 4. One thread a process.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys

FILE_US, RANGE_US = 8000, 30000


def grow(place):
    for directory in range(30):
        path = f"{place}/regular/{directory % 6}/{directory}"
        os.makedirs(path)
        for name in range(40):
            open(f"{path}/{name}", "w").close()
    for directory, names in [("huge", 900), ("a", 20), ("b", 20), ("c", 20)]:
        os.makedirs(f"{place}/skewed/{directory}")
        for name in range(names):
            open(f"{place}/skewed/{directory}/{name}", "w").close()
    with open(f"{place}/skewed/large", "wb") as large:
        for _ in range(512):
            large.write(os.urandom(1 << 20))


def copy(flatout, place, tree, processes):
    target = f"{place}/target"
    shutil.rmtree(target, ignore_errors=True)
    words = ["mpirun", "--oversubscribe", "-n", str(processes)]
    words += ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fchmod,pwrite64"]
    words += ["-e", f"inject=fchmod:delay_enter={FILE_US}", "-e", f"inject=pwrite64:delay_enter={RANGE_US}"]
    words += [flatout, "copy", "-j", "1", "--engine", "sync", "--block-size", "4M"]
    words += ["--format", "json", f"{place}/{tree}", target]
    known = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    known |= {"OMPI_MCA_plm_rsh_agent": "sh", "FLATOUT_RESUME": ""}
    ran = subprocess.run(words, env=os.environ | known, check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)["results"][0]["audit"]["elapsed_ns"] / 1e9


def main():
    flatout, rounds, place = sys.argv[1], int(sys.argv[2]), f"{sys.argv[3]}/far"
    grow(place)
    cases = [("regular", 1), ("regular", 2), ("regular", 4), ("skewed", 1), ("skewed", 4)]
    found = {case: [] for case in cases if case[0] in sys.argv[4:] or len(sys.argv) < 5}
    for _ in range(rounds):
        for case in found:
            found[case].append(copy(flatout, place, *case))
    for (tree, processes), seconds in found.items():
        told = " ".join(f"{one:.3f}" for one in seconds)
        print(f"{tree} by {processes}: median {statistics.median(seconds):.3f} s of {told}")
    shutil.rmtree(place)


main()
