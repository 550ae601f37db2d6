/* DGEMM and LU of whatever BLAS it is linked to: blas gemm|lu ORDER REPEATS prints GFLOPS, a line each.
 * gcc -O2 blas.c -o blas -lopenblas; the number of threads: OPENBLAS_NUM_THREADS. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
void dgetrf_(const int *, const int *, double *, const int *, int *, int *);

static uint64_t state;

/* Even over [-1/2, 1/2). */
static double random_number(void) {
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return (double)(z >> 11) / 9007199254740992.0 - 0.5;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static double *matrix(size_t count) {
    double *values;
    if (posix_memalign((void **)&values, 2 << 20, count * sizeof(double)))
        abort();
    madvise(values, count * sizeof(double), MADV_HUGEPAGE);
    return values;
}

int main(int count, char **words) {
    if (count < 4)
        return 2;
    int order = atoi(words[2]), repeats = atoi(words[3]), info;
    size_t numbers = (size_t)order * order;
    double *a = matrix(numbers), *b = matrix(numbers), *c = matrix(numbers);
    int *exchanges = malloc(order * sizeof(int));
    double one = 1, zero = 0, n = order;
    state = 1;
    for (size_t i = 0; i < numbers; i++)
        a[i] = random_number();
    state = 2;
    for (size_t i = 0; i < numbers; i++)
        b[i] = random_number();
    memset(c, 0, numbers * sizeof(double));
    for (int repeat = 0; repeat < repeats; repeat++) {
        int is_product = words[1][0] == 'g';
        if (!is_product)
            memcpy(c, a, numbers * sizeof(double));
        double begun = now();
        if (is_product)
            dgemm_("N", "N", &order, &order, &order, &one, a, &order, b, &order, &zero, c, &order);
        else
            dgetrf_(&order, &order, c, &order, exchanges, &info);
        double flop = is_product ? 2 * n * n * n : 2.0 / 3 * n * n * n;
        printf("%.2f\n", flop / (now() - begun) / 1e9);
        fflush(stdout);
    }
    return 0;
}
