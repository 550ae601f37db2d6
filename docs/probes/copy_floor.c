/* The floor of a copy of small files: the system calls that each file needs, and nothing else.
 *
 *   cc -O2 -pthread -o copy_floor copy_floor.c && ./copy_floor SOURCE NEW 2 nsxtmp directory
 *
 * Arguments: source tree, target (new), threads, calls, and what a thread takes at a time: all files
 * of a directory (`directory`), or 32 of them (`batch`), so that threads share directories. Calls, beside
 * openat, fstat, openat, pread, pwrite, close, close: n O_NOATIME, s a second fstat of the source,
 * x flistxattr, t utimensat, m fchmod, p fstatat of each name while its directory of the target is empty.
 * `nsxtmp` is what flatout called before 2026-11-26; c copy_file_range instead of
 * pread and pwrite; l FICLONE instead of them; f sendfile(2) (with B); T O_TMPFILE and linkat(2) instead of a name and fchmod (privileged); u each thread
 * has descriptors of its own (unshare(2), CLONE_FILES); B each call for 32 files in turn; M names made under a lock of each directory, which spins at first (with B); r none of these,
 * nor fstat, but a ring (io_uring) for each thread, which gets chains of openat, read, openat, write,
 * close, close for 32 files at once; R the same but for the second openat, write and close, which are
 * called one by one. The last three take files
 * of 4 KiB, but for B with c, f or l. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BUFFER (256 << 10)
#define DIRECTORIES 4096
#define CHAINS 32

struct directory { int from, to, count; char **names; pthread_mutex_t turn; };
struct piece { struct directory *in; int first, end; };
static struct directory directories[DIRECTORIES];
static int directory_count, piece_count;
static struct piece *pieces;
static atomic_int next_piece;
static const char *calls;

static int has(char call) { return strchr(calls, call) != 0; }
static void need(int ok, const char *what) { if (!ok) { perror(what); exit(1); } }

static void list(int from, int to) {
    need(from >= 0 && to >= 0 && directory_count < DIRECTORIES, "directory");
    struct directory *in = &directories[directory_count++];
    in->from = from, in->to = to;
    in->turn = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    DIR *open = fdopendir(dup(from));
    for (struct dirent *e; (e = readdir(open));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (e->d_type == DT_DIR) {
            need(!mkdirat(to, e->d_name, 0700), "mkdirat");
            list(openat(from, e->d_name, O_RDONLY), openat(to, e->d_name, O_RDONLY));
            continue;
        }
        in->names = realloc(in->names, (in->count + 1) * sizeof *in->names);
        in->names[in->count++] = strdup(e->d_name);
    }
    struct stat none;
    for (int i = 0; has('p') && i < in->count; i++)
        need(fstatat(to, in->names[i], &none, AT_SYMLINK_NOFOLLOW) < 0, in->names[i]);
}

static void copy(struct directory *in, const char *name, char *buffer) {
    struct stat found, again;
    int noatime = has('n') ? O_NOATIME : 0, nameless = has('T');
    int from = openat(in->from, name, noatime | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    need(from >= 0 && !fstat(from, &found), name);
    int to = nameless ? openat(in->to, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, found.st_mode & 0777)
                      : openat(in->to, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    need(to >= 0, name);
    for (long at = 0, got; at < found.st_size; at += got) {
        if (has('l')) {
            need(!ioctl(to, FICLONE, from), name);
            got = found.st_size;
        } else if (has('c')) {
            got = copy_file_range(from, 0, to, 0, found.st_size - at, 0);
        } else {
            got = pread(from, buffer, BUFFER, at);
            need(pwrite(to, buffer, got, at) == got, name);
        }
        need(got > 0, name);
    }
    if (has('s')) need(!fstat(from, &again), name);
    if (has('x')) need(flistxattr(from, buffer, 512) >= 0, name);
    struct timespec times[2] = {found.st_atim, found.st_mtim};
    if (has('t')) need(!futimens(to, times), name);
    if (has('m')) need(!fchmod(to, found.st_mode & 0777), name);
    if (nameless) need(!linkat(to, "", in->to, name, AT_EMPTY_PATH), name);
    close(to);
    close(from);
}

struct ring {
    int fd;
    unsigned *tail, *mask, *array, *head, *end;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *done;
};

static struct ring ring_of_thread(void) {
    struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    struct ring ring = {.fd = syscall(SYS_io_uring_setup, 8 * CHAINS, &p)};
    need(ring.fd >= 0, "io_uring_setup");
    size_t length = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe) + p.sq_entries * 4;
    char *at = mmap(0, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
    ring.entries = mmap(0, p.sq_entries * sizeof *ring.entries, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
    need(at != MAP_FAILED && ring.entries != MAP_FAILED, "mmap");
    ring.tail = (unsigned *)(at + p.sq_off.tail), ring.mask = (unsigned *)(at + p.sq_off.ring_mask);
    ring.array = (unsigned *)(at + p.sq_off.array);
    ring.head = (unsigned *)(at + p.cq_off.head), ring.end = (unsigned *)(at + p.cq_off.tail);
    ring.done = (struct io_uring_cqe *)(at + p.cq_off.cqes);
    int none[2 * CHAINS];
    memset(none, -1, sizeof none);
    need(!syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, none, 2 * CHAINS), "register");
    return ring;
}

static void copy_by_ring(struct ring *ring, struct directory *in, char **names, int count, char *buffers) {
    unsigned tail = *ring->tail, want = 0;
    int is_whole = has('r'), noatime = has('n') ? O_NOATIME : 0;
    for (int i = 0; i < count; i++) {
        char *buffer = buffers + i * 4096;
        struct io_uring_sqe chain[6] = {
            {.opcode = IORING_OP_OPENAT, .fd = in->from, .addr = (long)names[i], .file_index = 1 + i,
             .open_flags = noatime | O_RDONLY | O_NOFOLLOW | O_NONBLOCK},
            {.opcode = IORING_OP_READ, .fd = i, .flags = IOSQE_FIXED_FILE, .addr = (long)buffer, .len = 4096},
            {.opcode = IORING_OP_OPENAT, .fd = in->to, .addr = (long)names[i], .file_index = 1 + CHAINS + i,
             .open_flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, .len = 0600},
            {.opcode = IORING_OP_WRITE, .fd = CHAINS + i, .flags = IOSQE_FIXED_FILE, .addr = (long)buffer, .len = 4096},
            {.opcode = IORING_OP_CLOSE, .file_index = 1 + CHAINS + i},
            {.opcode = IORING_OP_CLOSE, .file_index = 1 + i}};
        for (int k = 0; k < 6; k++) {
            if (!is_whole && k > 1 && k < 5) continue;
            if (k < 5) chain[k].flags |= IOSQE_IO_LINK;
            ring->entries[tail & *ring->mask] = chain[k];
            ring->array[tail & *ring->mask] = tail & *ring->mask;
            tail++, want++;
        }
    }
    __atomic_store_n(ring->tail, tail, __ATOMIC_RELEASE);
    for (unsigned sent = 0, got = 0; got < want;) {
        int now = syscall(SYS_io_uring_enter, ring->fd, want - sent, want - got, IORING_ENTER_GETEVENTS, 0, 0);
        need(now >= 0, "io_uring_enter");
        sent += now;
        unsigned end = __atomic_load_n(ring->end, __ATOMIC_ACQUIRE), head = *ring->head;
        for (; head != end; head++, got++) need(ring->done[head & (2 * (*ring->mask + 1) - 1)].res >= 0, "request");
        __atomic_store_n(ring->head, head, __ATOMIC_RELEASE);
    }
    for (int i = 0; i < count && !is_whole; i++) {
        int to = openat(in->to, names[i], O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        need(to >= 0 && pwrite(to, buffers + i * 4096, 4096, 0) == 4096 && !close(to), names[i]);
    }
}

#define FOR_ALL(call) for (int i = 0; i < count; i++) need(call, names[i])

static void copy_in_turn(struct directory *in, char **names, int count, char *buffers) {
    struct stat found[CHAINS], again;
    int from[CHAINS], to[CHAINS], noatime = has('n') ? O_NOATIME : 0;
    FOR_ALL((from[i] = openat(in->from, names[i], noatime | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) >= 0);
    FOR_ALL(!fstat(from[i], &found[i]));
    int moves = has('c') || has('f') || has('l');
    if (!moves) FOR_ALL(pread(from[i], buffers + i * 4096, 4096, 0) == 4096);
    if (!moves && has('s')) FOR_ALL(!fstat(from[i], &again));
    if (has('x')) FOR_ALL(flistxattr(from[i], 0, 0) >= 0);
    if (has('M')) pthread_mutex_lock(&in->turn);
    FOR_ALL((to[i] = openat(in->to, names[i], O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) >= 0);
    if (has('M')) pthread_mutex_unlock(&in->turn);
    if (!moves) FOR_ALL(pwrite(to[i], buffers + i * 4096, 4096, 0) == 4096);
    if (has('c')) FOR_ALL(copy_file_range(from[i], 0, to[i], 0, found[i].st_size, 0) == found[i].st_size);
    if (has('f')) FOR_ALL(sendfile(to[i], from[i], 0, found[i].st_size) == found[i].st_size);
    if (has('l')) FOR_ALL(!ioctl(to[i], FICLONE, from[i]));
    if (moves && has('s')) FOR_ALL(!fstat(from[i], &again));
    if (has('t')) FOR_ALL(!futimens(to[i], (struct timespec[]){found[i].st_atim, found[i].st_mtim}));
    if (has('m')) FOR_ALL(!fchmod(to[i], found[i].st_mode & 0777));
    FOR_ALL(!close(to[i]));
    FOR_ALL(!close(from[i]));
}

static void *work(void *unused) {
    need(!has('u') || !unshare(CLONE_FILES), "unshare");
    struct ring ring = {0};
    if (has('r') || has('R')) ring = ring_of_thread();
    char *buffer = malloc(BUFFER);
    memset(buffer, 0, BUFFER);
    for (int index; (index = atomic_fetch_add(&next_piece, 1)) < piece_count;) {
        struct piece *piece = &pieces[index];
        for (int k = piece->first, count; k < piece->end; k += count) {
            count = ring.fd || has('B') ? piece->end - k < CHAINS ? piece->end - k : CHAINS : 1;
            if (ring.fd) copy_by_ring(&ring, piece->in, piece->in->names + k, count, buffer);
            else if (has('B')) copy_in_turn(piece->in, piece->in->names + k, count, buffer);
            else copy(piece->in, piece->in->names[k], buffer);
        }
    }
    return unused;
}

int main(int count, char **words) {
    if (count != 6) return 2;
    calls = words[4];
    umask(0);
    need(!mkdir(words[2], 0700), "mkdir");
    list(open(words[1], O_RDONLY), open(words[2], O_RDONLY));
    int step = strcmp(words[5], "batch") ? 1 << 30 : 32, threads = atoi(words[3]);
    size_t files = 0;
    for (int i = 0; i < directory_count; i++) files += directories[i].count;
    pieces = calloc(files + directory_count, sizeof *pieces);
    for (int i = 0; i < directory_count; i++)
        for (long k = 0, all = directories[i].count; k < all; k += step)
            pieces[piece_count++] =
                (struct piece){&directories[i], k, k + step < all ? k + step : all};
    pthread_t others[64];
    for (int i = 1; i < threads && i < 64; i++) pthread_create(&others[i], 0, work, 0);
    work(0);
    for (int i = 1; i < threads && i < 64; i++) pthread_join(others[i], 0);
    return 0;
}
