#!/usr/bin/env python3
"""flatout bench memory and cpu against independent programs in C, in turn.

machine_race.py FLATOUT ROUNDS [memory|cpu]

Builds stream.c, chase.c and blas.c beside it with gcc into a temporary folder. Each round runs everybody
once in random order; ratios are taken round by round, and the interval is that of the order statistics.
"""
import json, os, random, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FLATOUT, ROUNDS, WHAT = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
PLACE = tempfile.mkdtemp()
# Depth of the 95 % interval of a median by the number of rounds, six at least.
DEPTH = {6: 1, 7: 1, 8: 1, 9: 2, 10: 2, 11: 2, 12: 3, 13: 3, 14: 3, 15: 4}


def build(name, *flags):
    subprocess.run(["gcc", f"{HERE}/{name}.c", "-o", f"{PLACE}/{name}", *flags, "-lm"], check=True)


def output(command, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment}).stdout


def rows(*arguments):
    document = json.loads(output([FLATOUT, "bench", *arguments, "--format", "json"]))
    return [row for row in document["results"] if row["median"] is not None]


def stream(threads):
    text = output([f"{PLACE}/stream"], OMP_NUM_THREADS=str(threads))
    return {f"triad {threads}": float(next(line for line in text.splitlines() if line.startswith("Triad")).split()[2]) / 1e3}


def memory():
    found = {}
    for row in rows("memory", "--quick"):
        facts = row["parameters"]
        if row["id"] == "memory/stream":
            found[f"{facts['kernel']} {facts['threads']}"] = row["median"] / 1e9
        if row["id"] == "memory/latency":
            found[f"latency {facts['working_set_bytes']} {facts['page_bytes']}"] = row["median"]
    return found


def chase(length, pages):
    page_bytes = {"huge": 2097152, "base": 4096}[pages]
    return {f"latency {length} {page_bytes}": float(output([f"{PLACE}/chase", str(length), pages, "5"]))}


def blas(work, threads):
    text = output([f"{PLACE}/blas", {"dgemm": "gemm", "linpack": "lu"}[work], "6000", "1"], OPENBLAS_NUM_THREADS=str(threads))
    return {f"{work} {threads}": float(text.split()[-1])}


def matrices(threads):
    found = {}
    for row in rows("cpu", "--quick", "--order", "6000", "--trials", "1", "--threads", str(threads), "--max-time", "2s"):
        if row["id"] in ("cpu/dgemm", "cpu/linpack"):
            found[f"{row['id'][4:]} {threads}"] = row["median"] / 1e9
    return found


if WHAT == "memory":
    build("stream", "-O3", "-march=native", "-fopenmp", "-mcmodel=medium")
    build("chase", "-O2")
    ours = [memory]
    theirs = [lambda: stream(1), lambda: stream(2), lambda: chase(16384, "huge"), lambda: chase(262144, "huge"), lambda: chase(268435456, "huge")]
    pairs = [("triad 1", "triad 1"), ("triad 2", "triad 2"), ("nt-triad 1", "triad 1"), ("nt-triad 2", "triad 2")]
    pairs += [(f"latency {length} 2097152",) * 2 for length in (16384, 262144, 268435456)]
else:
    build("blas", "-O2", "-lopenblas")
    ours = [lambda: matrices(1), lambda: matrices(2)]
    theirs = [lambda work=work, count=count: blas(work, count) for work in ("dgemm", "linpack") for count in (1, 2)]
    pairs = [(f"{work} {count}",) * 2 for work in ("dgemm", "linpack") for count in (1, 2)]

rounds = []
for _ in range(ROUNDS):
    own, other = {}, {}
    for side, run in random.sample([(own, run) for run in ours] + [(other, run) for run in theirs], len(ours) + len(theirs)):
        side.update(run())
    rounds.append((own, other))
for mine, its in pairs:
    both = [(own[mine], other[its]) for own, other in rounds if mine in own and its in other]
    if len(both) < 2:
        print(f"{mine}: too few rounds")
        continue
    ratios = sorted(one / two for one, two in both)
    depth = DEPTH.get(len(ratios))
    span = f"[{ratios[depth - 1]:.3f}, {ratios[-depth]:.3f}]" if depth else f"{[round(ratio, 3) for ratio in ratios]}"
    medians = [statistics.median(side) for side in zip(*both)]
    print(f"{mine} ÷ {its}: {medians[0]:.2f} and {medians[1]:.2f}, ratio {statistics.median(ratios):.3f} {span}, {len(both)} rounds")
