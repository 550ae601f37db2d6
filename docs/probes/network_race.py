#!/usr/bin/env python3
"""Races `flatout bench network` over loopback against iperf3, iperf 2, sockperf and a bare loop.

    network_race.py FLATOUT ROUNDS tcp|udp|latency|tied

Each round runs every contestant once, in random order; ratios are taken round by round. Prints
medians, and the median of the ratios with its 95 % interval by order statistics (from six rounds
on; the range below). Needs iperf3, sockperf, iperf if it is there, and for udp `udp_loop` (udp_loop.c) in the
current folder. Rates are bytes/s, latencies nanoseconds of a whole round trip.
"""
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import time

FLATOUT, ROUNDS, GROUP = sys.argv[1], int(sys.argv[2]), sys.argv[3]
PORT = 23450


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout


def flatout(*words):
    """The medians of the rows of one run."""
    # Sender and placement are chosen by measuring, for which a second is too short.
    seconds = "1s" if {"--sender", "--offload", "latency"} & set(words) else "4s"
    text = run(FLATOUT, "bench", "network", "--quick", "--max-time", seconds, "--format", "json",
               *words)
    return [row for row in json.loads(text)["results"] if row["id"] != "network/loopback-memcpy"]


def throughput(*words):
    return lambda: flatout("--duration", "150ms", "--direction", "up", *words)[0]["median"]


def latency(protocol, placement="free"):
    def ask():
        row = flatout("--measure", "latency", "--duration", "150ms", "--block-size", "64",
                      "--streams", "1", "--protocol", protocol, "--placement", placement)[0]
        return row["latency"]["percentiles_ns"]["p50"]
    return ask


def served(server, client, read):
    """A rival of two programs."""
    def race():
        process = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.3)
            return read(run(*client))
        finally:
            process.kill()
            process.wait()
    return race


def iperf3(*words):
    def read(text):
        end = json.loads(text)["end"]
        total = end.get("sum_received") or end["sum"]
        if "-u" in words:
            good = 1 - end["sum"]["lost_percent"] / 100
            return end["sum"]["bytes"] * good / end["sum"]["seconds"]
        return total["bits_per_second"] / 8
    port = str(PORT)
    return served(["iperf3", "-s", "-1", "-p", port],
                  ["iperf3", "-c", "127.0.0.1", "-p", port, "-t", "1", "-J", *words], read)


def iperf2(streams):
    port = str(PORT + 1)
    read = lambda text: float(text.strip().splitlines()[-1].split(",")[-1]) / 8
    return served(["iperf", "-s", "-p", port, "-l", "64K"],
                  ["iperf", "-c", "127.0.0.1", "-p", port, "-t", "1", "-l", "64K", "-y", "C",
                   "-P", str(streams)], read)


def sockperf(*words, server=(), client=()):
    port = str(PORT + 2)
    def read(text):
        return float(re.search(r"percentile 50\.000 = *([0-9.]+)", text)[1]) * 1000
    return served([*server, "sockperf", "server", "-i", "127.0.0.1", "-p", port, *words],
                  [*client, "sockperf", "ping-pong", "-i", "127.0.0.1", "-p", port, "-t", "1",
                   "-m", "64", "--full-rtt", *words], read)


BLOCK = ("--block-size", "64K")
CPU_0, CPU_1 = ("taskset", "-c", "0"), ("taskset", "-c", "1")
GROUPS = {
    "tcp": ({
        "flatout": throughput("--protocol", "tcp", "--streams", "1", *BLOCK),
        "flatout write": throughput("--sender", "write", "--streams", "1", *BLOCK),
        "flatout sendfile": throughput("--sender", "sendfile", "--streams", "1", *BLOCK),
        "flatout 4": throughput("--protocol", "tcp", "--streams", "4", *BLOCK),
        "iperf3": iperf3("-l", "64K"),
        "iperf3 -Z": iperf3("-l", "64K", "-Z"),
        "iperf3 -P 4": iperf3("-l", "64K", "-P", "4"),
        **({"iperf -P 4": iperf2(4)} if shutil.which("iperf") else {}),
    }, [("flatout", "iperf3"), ("flatout", "iperf3 -Z"), ("flatout sendfile", "iperf3 -Z"),
        ("flatout write", "iperf3"),
        ("flatout 4", "iperf3 -P 4"), ("flatout 4", "iperf -P 4"), ("flatout 4", "flatout")]),
    "udp": ({
        "flatout": throughput("--offload", "none", "--datagram-size", "1460", "--block-size",
                              "1460", "--streams", "1"),
        "flatout gso+gro": throughput("--offload", "gso+gro", "--datagram-size", "1460",
                                      "--streams", "1"),
        "bare loop": lambda: float(run("./udp_loop", "1460", "0.5")),
        "iperf3 -u": iperf3("-u", "-b", "0", "-l", "1460"),
    }, [("flatout", "bare loop"), ("flatout", "iperf3 -u"), ("flatout gso+gro", "flatout")]),
    "latency": ({
        "flatout tcp": latency("tcp"),
        "flatout udp": latency("udp"),
        "sockperf tcp": sockperf("--tcp"),
        "sockperf udp": sockperf(),
    }, [("flatout tcp", "sockperf tcp"), ("flatout udp", "sockperf udp")]),
    "tied": ({
        "flatout tcp, one CPU": latency("tcp", "together"),
        "flatout udp, one CPU": latency("udp", "together"),
        "flatout tcp, two CPUs": latency("tcp", "apart"),
        "flatout udp, two CPUs": latency("udp", "apart"),
        "sockperf tcp, one CPU": sockperf("--tcp", server=CPU_0, client=CPU_0),
        "sockperf udp, one CPU": sockperf(server=CPU_0, client=CPU_0),
        "sockperf tcp, two CPUs": sockperf("--tcp", server=CPU_1, client=CPU_0),
        "sockperf udp, two CPUs": sockperf(server=CPU_1, client=CPU_0),
    }, [(f"flatout {way}", f"sockperf {way}") for way in
        ("tcp, one CPU", "udp, one CPU", "tcp, two CPUs", "udp, two CPUs")]),
}


def interval(values):
    """The 95 % interval of the median by order statistics; the range below six values."""
    values = sorted(values)
    count = len(values)
    if count < 6:
        return f"({values[0]:.2f}–{values[-1]:.2f}, {count} rounds)"
    from math import comb
    low = max(k for k in range(count // 2)
              if 2 * sum(comb(count, i) for i in range(k + 1)) / 2 ** count <= 0.05)
    return f"[{values[low]:.2f}, {values[-1 - low]:.2f}]"


contestants, pairs = GROUPS[GROUP]
figures = {name: [] for name in contestants}
for _ in range(ROUNDS):
    names = list(contestants)
    random.shuffle(names)
    for name in names:
        figures[name].append(contestants[name]())
for name, values in figures.items():
    print(f"{name:22} median {statistics.median(values):.4g}  {min(values):.4g} – {max(values):.4g}")
for first, second in (pair for pair in pairs if set(pair) <= set(figures)):
    ratios = [a / b for a, b in zip(figures[first], figures[second])]
    print(f"{first} ÷ {second}: {statistics.median(ratios):.2f} {interval(ratios)}")
