#!/usr/bin/env python3
"""Races `flatout bench disk` against fio on one file, trial by trial.

Usage: disk_race.py FLATOUT FILE [ROUNDS] [CASE...]

FILE is made (1 GiB of random bytes) if it is not there; cases that write overwrite it. Per round
and case each program runs one trial of a second, in random order; the ratio of each pair counts,
flatout over fio. Printed: the median of the ratios and its 95 % bootstrap interval.
The cases on 2 MiB pages need some: sysctl vm.nr_hugepages=64. Latency is from submission to end.
CPU time is user and system time of the threads that ask, as each program reports it.
"""

import json
import os
import random
import statistics
import subprocess
import sys

SECONDS = 1
LENGTH = 1 << 30

# name: flatout's options, fio's options, what is compared
CASES = {
    "random read 4 KiB, depth 64": (
        "--pattern random-read --block-size 4K --depth 64",
        "--rw=randread --bs=4k --ioengine=io_uring --iodepth=64 --direct=1", ("rate", "cpu")),
    "random read 4 KiB, depth 1": (
        "--pattern random-read --block-size 4K --depth 1",
        "--rw=randread --bs=4k --ioengine=io_uring --iodepth=1 --direct=1", ("p50", "rate")),
    "sequential read 1 MiB, depth 16": (
        "--pattern sequential-read --block-size 1M --depth 16",
        "--rw=read --bs=1m --ioengine=io_uring --iodepth=16 --direct=1", ("rate", "cpu")),
    "sequential read, fio on 2 MiB pages": (
        "--pattern sequential-read --block-size 1M --depth 16",
        "--rw=read --bs=1m --ioengine=io_uring --iodepth=16 --direct=1 --mem=mmaphuge --hugepage-size=2m",
        ("rate", "cpu")),
    "sequential write, fio on 2 MiB pages": (
        "--pattern sequential-write --block-size 1M --depth 16 --overwrite",
        "--rw=write --bs=1m --ioengine=io_uring --iodepth=16 --direct=1 --overwrite=1 --mem=mmaphuge --hugepage-size=2m",
        ("rate", "cpu")),
    "sequential write 1 MiB, depth 16": (
        "--pattern sequential-write --block-size 1M --depth 16 --overwrite",
        "--rw=write --bs=1m --ioengine=io_uring --iodepth=16 --direct=1 --overwrite=1", ("rate", "cpu")),
    "random write 4 KiB, depth 64": (
        "--pattern random-write --block-size 4K --depth 64 --overwrite",
        "--rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 --direct=1 --overwrite=1", ("rate", "cpu")),
    "mixed 70/30 4 KiB, depth 64": (
        "--pattern mixed --block-size 4K --depth 64 --overwrite",
        "--rw=randrw --rwmixread=70 --bs=4k --ioengine=io_uring --iodepth=64 --direct=1 --overwrite=1", ("rate", "cpu")),
    "random read 16 KiB, 2 threads, sync": (
        "--pattern random-read --block-size 16K --threads 2 --engine sync",
        "--rw=randread --bs=16k --ioengine=psync --numjobs=2 --direct=1", ("rate", "p50")),
    "sequential read 1 MiB, buffered, cold": (
        "--pattern sequential-read --block-size 1M --engine sync --caching buffered",
        "--rw=read --bs=1m --ioengine=psync --direct=0 --fadvise_hint=0", ("rate",)),
}


def flatout(program, file, options):
    command = [program, "bench", "disk", file, *options.split(), "--runtime", f"{SECONDS}s",
               "--rounds", "1", "--format", "json"]
    record = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    row = record["results"][0]
    audit = row["audit"]
    return {"rate": row["median"] if row["unit"] == "bytes/s" else row["median"] * row["parameters"]["block_bytes"],
            "cpu": audit["cpu_ns_per_operation"],
            "p50": row["latency"]["percentiles_ns"].get("p50")}


def fio(file, options):
    command = ["fio", "--name=race", f"--filename={file}", f"--size={LENGTH}", *options.split(),
               f"--runtime={SECONDS}", "--thread", "--group_reporting", "--output-format=json", "--lat_percentiles=1", "--clat_percentiles=0"]
    if "--direct=0" not in options:
        command.append("--time_based")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"fio failed: {' '.join(command)}\n{done.stderr}{done.stdout}")
    output = done.stdout
    job = json.loads(output[output.index("{"):])["jobs"][0]
    sides = [job[side] for side in ("read", "write") if job[side]["total_ios"]]
    count = sum(side["total_ios"] for side in sides)
    threads_ns = job["job_runtime"] * 1e6
    return {"rate": sum(side["bw_bytes"] for side in sides),
            "cpu": (job["usr_cpu"] + job["sys_cpu"]) / 100 * threads_ns / count,
            "p50": sides[0]["lat_ns"]["percentile"]["50.000000"]}


def interval(ratios):
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(5000))
    return statistics.median(ratios), medians[125], medians[4874]


def main():
    program, file = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    cases = sys.argv[4:] or list(CASES)
    if not os.path.exists(file):
        with open(file, "xb") as out:
            for _ in range(LENGTH >> 20):
                out.write(os.urandom(1 << 20))
            os.fsync(out.fileno())
    pairs = {case: [] for case in cases}
    for _ in range(rounds):
        for case in random.sample(cases, len(cases)):
            ours, theirs, _ = CASES[case]
            turns = {"flatout": lambda: flatout(program, file, ours), "fio": lambda: fio(file, theirs)}
            seen = {name: turns[name]() for name in random.sample(list(turns), 2)}
            pairs[case].append(seen)
    for case in cases:
        for what in CASES[case][2]:
            seen = [pair for pair in pairs[case] if pair["flatout"][what] and pair["fio"][what]]
            ratio = interval([pair["flatout"][what] / pair["fio"][what] for pair in seen])
            ours = statistics.median(pair["flatout"][what] for pair in seen)
            theirs = statistics.median(pair["fio"][what] for pair in seen)
            unit = {"rate": "MB/s", "cpu": "ns/op", "p50": "ns"}[what]
            scale = 1e6 if what == "rate" else 1
            print(f"{case:38} {what:5} flatout {ours / scale:9.0f} fio {theirs / scale:9.0f} {unit:6}"
                  f" ratio {ratio[0]:.3f} [{ratio[1]:.3f}, {ratio[2]:.3f}] n={len(seen)}", flush=True)


main()
