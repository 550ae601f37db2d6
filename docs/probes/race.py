#!/usr/bin/env python3
"""Races commands in one run: rounds in random order, medians, and the ratio of the first to each
other with a 95 % bootstrap interval over rounds.

    race.py ROUNDS NAME=PATTERN=COMMAND …

PATTERN is a regular expression whose first group is the figure in what COMMAND prints (on either
stream); a larger figure is better. An empty PATTERN takes 1 ÷ wall time. BEFORE, from the
environment, is run before each command, untimed.
"""
import os
import random
import re
import statistics
import subprocess
import sys
import time


def figure(pattern, command):
    if os.environ.get("BEFORE"):
        subprocess.run(os.environ["BEFORE"], shell=True, check=True, capture_output=True)
    start = time.perf_counter()
    ran = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)
    wall = time.perf_counter() - start
    if not pattern:
        return 1 / wall
    return float(re.search(pattern, ran.stdout + ran.stderr).group(1).replace(",", ""))


def interval(first, other, draws=4000):
    rounds = range(len(first))
    ratios = []
    for _ in range(draws):
        drawn = random.choices(rounds, k=len(first))
        median = lambda values: statistics.median(values[i] for i in drawn)
        ratios.append(median(first) / median(other))
    ratios.sort()
    return ratios[draws * 25 // 1000], ratios[draws * 975 // 1000]


def main():
    rounds = int(sys.argv[1])
    racers = [argument.split("=", 2) for argument in sys.argv[2:]]
    figures = {name: [] for name, _, _ in racers}
    for _ in range(rounds):
        for name, pattern, command in random.sample(racers, len(racers)):
            figures[name].append(figure(pattern, command))
    first = racers[0][0]
    for name, values in figures.items():
        low, high = interval(figures[first], values)
        ratio = statistics.median(figures[first]) / statistics.median(values)
        print(f"{name:12} median {statistics.median(values):12.6g}  min {min(values):12.6g}  "
              f"max {max(values):12.6g}  {first}/{name} {ratio:.3f} [{low:.3f}, {high:.3f}]")


main()
