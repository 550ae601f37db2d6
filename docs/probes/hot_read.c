/* The floor under a hot read of FILE: what the kernel takes to show or copy cached pages. XORs it with
 * THREADS threads by several ways in turn, ROUNDS times; prints the median rate of each, and the range.
 *
 *   cc -O3 -march=native -pthread hot_read.c -o hot_read && ./hot_read FILE 2 9
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64, MAX_ROUNDS = 64, MIB = 1 << 20, WINDOW = 16 * MIB };
enum how { MAPPED_BEFORE, WINDOWS, POPULATED, ASKED, READ, COPIED };
struct way { const char *name; enum how how; size_t piece; };
static const struct way ways[] = {
    {"mapped before the clock starts", MAPPED_BEFORE, 0},
    {"mmap, windows of 2 MiB", WINDOWS, 2 * MIB}, {"mmap, windows of 16 MiB", WINDOWS, WINDOW},
    {"mmap, windows of 64 MiB", WINDOWS, 64 * MIB}, {"MAP_POPULATE, 16 MiB", POPULATED, WINDOW},
    {"MADV_POPULATE_READ, 256 KiB", ASKED, MIB / 4}, {"MADV_POPULATE_READ, 1 MiB", ASKED, MIB},
    {"read(2), 32 KiB", READ, MIB / 32}, {"read(2), 64 KiB", READ, MIB / 16}, {"read(2), 128 KiB", READ, MIB / 8},
    {"read(2), 256 KiB", READ, MIB / 4}, {"read(2), 1 MiB", READ, MIB}, {"read(2), 64 KiB, not looked at", COPIED, MIB / 16},
};
enum { WAYS = sizeof ways / sizeof *ways };
struct part { const struct way *way; size_t start, end; };

static const char *path;
static uint8_t *whole;
static volatile uint64_t sink;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint64_t xor_of(const uint8_t *bytes, size_t length) {
    uint64_t sum = 0;
    for (size_t i = 0; i < length / 8; i++) sum ^= ((const uint64_t *)bytes)[i];
    return sum;
}

static void *work(void *argument) {
    struct part *part = argument;
    enum how how = part->way->how;
    size_t piece = part->way->piece;
    int file = open(path, O_RDONLY);
    uint64_t sum = 0;
    if (how == MAPPED_BEFORE) sum = xor_of(whole + part->start, part->end - part->start);
    else if (how == READ || how == COPIED) {
        uint8_t *buffer = aligned_alloc(2 * MIB, 2 * MIB);
        madvise(buffer, 2 * MIB, MADV_HUGEPAGE);
        for (size_t at = part->start; at < part->end; at += piece) {
            if (pread(file, buffer, piece, at) != (ssize_t)piece) abort();
            if (how == READ) sum ^= xor_of(buffer, piece);
        }
        free(buffer);
    } else {
        size_t window = how == ASKED ? WINDOW : piece;
        int flags = MAP_SHARED | (how == POPULATED ? MAP_POPULATE : 0);
        for (size_t at = part->start; at < part->end; at += window) {
            uint8_t *bytes = mmap(NULL, window, PROT_READ, flags, file, at);
            if (bytes == MAP_FAILED) abort();
            for (size_t in = 0; in < window; in += piece) {
                if (how == ASKED) madvise(bytes + in, piece, MADV_POPULATE_READ);
                sum ^= xor_of(bytes + in, piece);
            }
            munmap(bytes, window);
        }
    }
    close(file);
    __sync_fetch_and_xor(&sink, sum);
    return NULL;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **argument) {
    if (count != 4) return 2;
    path = argument[1];
    int threads = atoi(argument[2]), rounds = atoi(argument[3]);
    if (threads < 1 || threads > MAX_THREADS || rounds < 1 || rounds > MAX_ROUNDS) return 2;
    int file = open(path, O_RDONLY);
    size_t share = lseek(file, 0, SEEK_END) / threads / (64 * MIB) * (64 * MIB);
    whole = mmap(NULL, share * threads, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    if (share == 0 || whole == MAP_FAILED) return 1;
    static double rates[WAYS][MAX_ROUNDS];
    for (int round = 0; round < rounds; round++)
        for (int way = 0; way < WAYS; way++) {
            pthread_t handles[MAX_THREADS];
            struct part parts[MAX_THREADS];
            double start = now_s();
            for (int i = 0; i < threads; i++) {
                parts[i] = (struct part){&ways[way], share * i, share * (i + 1)};
                pthread_create(handles + i, NULL, work, parts + i);
            }
            for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
            rates[way][round] = share * threads / 1e9 / (now_s() - start);
        }
    for (int way = 0; way < WAYS; way++) {
        qsort(rates[way], rounds, sizeof(double), by_value);
        printf("%-32s %5.1f GB/s (%.1f-%.1f)\n", ways[way].name, rates[way][rounds / 2], rates[way][0],
               rates[way][rounds - 1]);
    }
    return 0;
}
