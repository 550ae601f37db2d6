/* Own re-implementation of the rules of McCalpin's STREAM: static arrays of doubles, OpenMP loops,
 * NTIMES iterations of copy, scale, add, triad, the first not counted. Prints as STREAM does,
 * so that `flatout versus stream` can race it where it is installed as `stream`:
 *
 *   gcc -O3 -fopenmp -mcmodel=medium -DN=40000000 stream.c -o /usr/local/bin/stream -lm
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <float.h>
#include <sys/time.h>
#include <omp.h>
#ifndef N
#define N 55050240
#endif
#ifndef NTIMES
#define NTIMES 10
#endif
static double a[N], b[N], c[N];
static double mysecond(void) { struct timeval tp; gettimeofday(&tp, NULL); return tp.tv_sec + tp.tv_usec * 1e-6; }
static int cmp(const void *x, const void *y) { double d = *(double*)x - *(double*)y; return d < 0 ? -1 : d > 0; }
int main(void) {
    static double times[4][NTIMES];
    double scalar = 3.0;
    long j;
    printf("Array size = %ld (elements)\nNumber of Threads counted = %d\n", (long)N, omp_get_max_threads());
#pragma omp parallel for
    for (j = 0; j < N; j++) { a[j] = 1.0; b[j] = 2.0; c[j] = 0.0; }
#pragma omp parallel for
    for (j = 0; j < N; j++) a[j] = 2.0E0 * a[j];
    for (int k = 0; k < NTIMES; k++) {
        times[0][k] = mysecond();
#pragma omp parallel for
        for (j = 0; j < N; j++) c[j] = a[j];
        times[0][k] = mysecond() - times[0][k];
        times[1][k] = mysecond();
#pragma omp parallel for
        for (j = 0; j < N; j++) b[j] = scalar * c[j];
        times[1][k] = mysecond() - times[1][k];
        times[2][k] = mysecond();
#pragma omp parallel for
        for (j = 0; j < N; j++) c[j] = a[j] + b[j];
        times[2][k] = mysecond() - times[2][k];
        times[3][k] = mysecond();
#pragma omp parallel for
        for (j = 0; j < N; j++) a[j] = b[j] + scalar * c[j];
        times[3][k] = mysecond() - times[3][k];
    }
    double aj = 1.0, bj = 2.0, cj = 0.0;
    aj = 2.0 * aj;
    for (int k = 0; k < NTIMES; k++) { cj = aj; bj = scalar * cj; cj = aj + bj; aj = bj + scalar * cj; }
    double worst = 0;
    for (j = 0; j < N; j++) {
        worst = fmax(worst, fabs(a[j] / aj - 1)); worst = fmax(worst, fabs(b[j] / bj - 1)); worst = fmax(worst, fabs(c[j] / cj - 1));
    }
    if (worst > 1e-13) { printf("FAILED %g\n", worst); return 1; }
    const char *names[4] = { "Copy:", "Scale:", "Add:", "Triad:" };
    printf("Function    Best Rate MB/s  Median rate MB/s\n");
    double bytes[4] = { 2, 2, 3, 3 };
    for (int t = 0; t < 4; t++) {
        qsort(times[t] + 1, NTIMES - 1, sizeof(double), cmp);
        double total = bytes[t] * 8.0 * N;
        printf("%-12s %14.1f %16.1f\n", names[t], total / times[t][1] / 1e6, total / times[t][1 + (NTIMES - 1) / 2] / 1e6);
    }
    printf("Solution Validates: no element is off by more than 1e-13\n");
}
