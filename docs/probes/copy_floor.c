/* The floor of a copy of small files: the system calls that each file needs, and nothing else.
 *
 *   cc -O2 -pthread -o copy_floor copy_floor.c && ./copy_floor SOURCE NEW 2 nsxtm directory
 *
 * Arguments: source tree, target (new), threads, calls, and what a thread takes at a time: all files
 * of a directory (`directory`), or 32 of them (`batch`), so that threads share directories. Calls, beside
 * openat, fstat, openat, pread, pwrite, close, close: n O_NOATIME, s a second fstat of the source,
 * x flistxattr, t utimensat, m fchmod. `nsxtm` is what flatout calls; c copy_file_range instead of
 * pread and pwrite; T O_TMPFILE and linkat(2) instead of a name and fchmod (privileged); u each thread
 * has descriptors of its own (unshare(2), CLONE_FILES). */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BUFFER (256 << 10)
#define DIRECTORIES 4096

struct directory { int from, to, count; char **names; };
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
        if (has('c')) {
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

static void *work(void *unused) {
    need(!has('u') || !unshare(CLONE_FILES), "unshare");
    char *buffer = malloc(BUFFER);
    memset(buffer, 0, BUFFER);
    for (int index; (index = atomic_fetch_add(&next_piece, 1)) < piece_count;) {
        struct piece *piece = &pieces[index];
        for (int k = piece->first; k < piece->end; k++) copy(piece->in, piece->in->names[k], buffer);
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
