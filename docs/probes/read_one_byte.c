/* The floor under a read of 1-byte blocks: a loop around read(2). Prints calls per second and the
 * xor32 of what was read.
 *
 *   cc -O2 read_one_byte.c -o read_one_byte && ./read_one_byte FILE 1000000
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int count, char **argument) {
    if (count != 3) return 2;
    int file = open(argument[1], O_RDONLY);
    long calls = atol(argument[2]), done = 0;
    unsigned sum = 0;
    unsigned char byte;
    double start = now_s();
    while (done < calls && read(file, &byte, 1) == 1) sum ^= (unsigned)byte << (8 * (done++ & 3));
    printf("%.0f %08x\n", done / (now_s() - start), sum);
    return done == calls ? 0 : 1;
}
