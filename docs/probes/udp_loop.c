/* The floor of UDP over loopback: sendmmsg in one thread, recvmmsg in another, nothing else.
 *
 *   cc -O2 -pthread -o udp_loop udp_loop.c && ./udp_loop 1460 1.0
 *
 * Arguments: bytes of a datagram, seconds. Prints received bytes per second. Like flatout it asks
 * for a receive buffer of 4 MiB, ties sender and receiver to CPUs 0 and 1, sends 32 and receives
 * up to 64 datagrams per call, and does not look at what comes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static int in, out;
static size_t size;
static volatile int stop;
static volatile unsigned long long received;

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void batch(struct mmsghdr *messages, struct iovec *vectors, int count) {
    for (int i = 0; i < count; i++) {
        vectors[i] = (struct iovec){aligned_alloc(4096, (size + 4096) & ~4095ul), size};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}};
    }
}

static void *sender(void *unused) {
    struct mmsghdr messages[32];
    struct iovec vectors[32];
    pin(0);
    batch(messages, vectors, 32);
    while (!stop) sendmmsg(out, messages, 32, 0);
    return unused;
}

static void *receiver(void *unused) {
    struct mmsghdr messages[64];
    struct iovec vectors[64];
    pin(1);
    batch(messages, vectors, 64);
    while (!stop) {
        int count = recvmmsg(in, messages, 64, MSG_WAITFORONE, NULL);
        for (int i = 0; i < count; i++) received += messages[i].msg_len;
    }
    return unused;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int count, char **words) {
    size = count > 1 ? strtoul(words[1], NULL, 10) : 1460;
    double seconds = count > 2 ? strtod(words[2], NULL) : 1.0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int room = 4 << 20;
    struct timeval patience = {.tv_usec = 100000};
    in = socket(AF_INET, SOCK_DGRAM, 0);
    out = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(in, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bind(in, (struct sockaddr *)&at, sizeof at);
    getsockname(in, (struct sockaddr *)&at, &length);
    connect(out, (struct sockaddr *)&at, sizeof at);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, receiver, NULL);
    pthread_create(&threads[1], NULL, sender, NULL);
    struct timespec warm = {.tv_nsec = 100000000};
    nanosleep(&warm, NULL);
    double start = now();
    unsigned long long before = received;
    struct timespec window = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&window, NULL);
    printf("%.0f\n", (received - before) / (now() - start));
    stop = 1;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
