/* The floor under a hot read: XORs LENGTH bytes of anonymous memory with THREADS threads and prints
 * the best and the median rate of 15 rounds in MiB/s.
 *
 *   cc -O3 -march=native -pthread memory_read.c -o memory_read && ./memory_read 1073741824 2
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUNDS = 15, MAX_THREADS = 64 };

static uint64_t *memory;
static size_t words;
static int threads;
static volatile uint64_t sink;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *xor_part(void *argument) {
    size_t share = words / threads, start = share * (size_t)argument;
    uint64_t sum = 0;
    for (size_t i = start; i < start + share; i++) sum ^= memory[i];
    __sync_fetch_and_xor(&sink, sum);
    return NULL;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **argument) {
    if (count != 3) return 2;
    size_t length = strtoull(argument[1], NULL, 10);
    threads = atoi(argument[2]);
    if (threads < 1 || threads > MAX_THREADS) return 2;
    words = length / 8;
    memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    madvise(memory, length, MADV_HUGEPAGE);
    for (size_t i = 0; i < words; i++) memory[i] = i * 0x9e3779b97f4a7c15u;
    double rates[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t handles[MAX_THREADS];
        double start = now_s();
        for (long i = 0; i < threads; i++) pthread_create(handles + i, NULL, xor_part, (void *)i);
        for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
        rates[round] = length / 1048576.0 / (now_s() - start);
    }
    qsort(rates, ROUNDS, sizeof *rates, by_value);
    printf("%.0f %.0f\n", rates[ROUNDS - 1], rates[ROUNDS / 2]);
    return 0;
}
