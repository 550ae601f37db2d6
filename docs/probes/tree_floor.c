/*
 * The calls that a copy of a tree of many directories or symlinks needs, and nothing else: by threads that
 * take directories as they are found, each call for up to 32 names of one in turn.
 *
 *   gcc -O2 -pthread -o tree_floor tree_floor.c; tree_floor SOURCE TARGET THREADS CALLS
 *
 * Files have 4 KiB at most. CALLS, besides what moves names and bytes: c copy_file_range instead of pread and
 * pwrite, x names of attributes, s a second fstat of each source, t times of files and symlinks, d attributes of
 * directories, which are made 01700, a access times of source directories change.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TOGETHER 32
#define BLOCK 4096
#define LISTING 65536

struct directory { struct directory *above, *next; int from, to; atomic_int pending; struct stat facts; char name[]; };
struct entry { unsigned long inode; long offset; unsigned short length; unsigned char type; char name[]; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct directory *ready;
static int busy, idle;
static const char *calls;

static int has(char call) { return strchr(calls, call) != 0; }
static void need(int ok, const char *what) { if (!ok) { perror(what); exit(1); } }
#define TIMES(facts) (struct timespec[]){(facts).st_atim, (facts).st_mtim}
#define FOR_ALL(call) for (int i = 0; i < count; i++) need(call, names[i])

static struct directory *found(struct directory *above, const char *name) {
    struct directory *new = calloc(1, sizeof *new + strlen(name) + 1);
    strcpy(new->name, name);
    new->above = above, new->pending = 1;
    pthread_mutex_lock(&lock);
    new->next = ready, ready = new;
    if (idle) pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return new;
}

static void piece_done(struct directory *d) {
    for (struct directory *above; d && atomic_fetch_sub(&d->pending, 1) == 1; d = above) {
        char list[512];
        if (has('d'))
            need(flistxattr(d->from, list, sizeof list) >= 0 && !futimens(d->to, TIMES(d->facts))
                 && !fchmod(d->to, d->facts.st_mode & 07777), d->name);
        close(d->to), close(d->from);
        above = d->above;
        free(d);
    }
}

static void files(struct directory *d, char **names, int count, char *buffers) {
    struct stat facts[TOGETHER], again;
    int from[TOGETHER], to[TOGETHER], reading = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOATIME;
    FOR_ALL((from[i] = openat(d->from, names[i], reading)) >= 0);
    FOR_ALL(!fstat(from[i], &facts[i]) && facts[i].st_size <= BLOCK);
    if (has('x')) FOR_ALL(flistxattr(from[i], 0, 0) >= 0);
    if (!has('c')) FOR_ALL(pread(from[i], buffers + i * BLOCK, BLOCK, 0) == facts[i].st_size);
    FOR_ALL((to[i] = openat(d->to, names[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, facts[i].st_mode & 0777)) >= 0);
    if (!has('c')) FOR_ALL(pwrite(to[i], buffers + i * BLOCK, facts[i].st_size, 0) == facts[i].st_size);
    if (has('c')) FOR_ALL(copy_file_range(from[i], 0, to[i], 0, facts[i].st_size, 0) == facts[i].st_size);
    if (has('s')) FOR_ALL(!fstat(from[i], &again));
    if (has('t')) FOR_ALL(!futimens(to[i], TIMES(facts[i])));
    FOR_ALL(!close(to[i]));
    FOR_ALL(!close(from[i]));
}

static void symlinks(struct directory *d, char **names, int count) {
    char texts[TOGETHER][256] = {0};
    struct stat facts[TOGETHER];
    FOR_ALL(!fstatat(d->from, names[i], &facts[i], AT_SYMLINK_NOFOLLOW));
    FOR_ALL(readlinkat(d->from, names[i], texts[i], sizeof texts[i] - 1) > 0);
    FOR_ALL(!symlinkat(texts[i], d->to, names[i]));
    if (has('x')) FOR_ALL(syscall(465 /* listxattrat */, d->from, names[i], AT_SYMLINK_NOFOLLOW, 0, 0) >= 0);
    if (has('t')) FOR_ALL(!utimensat(d->to, names[i], TIMES(facts[i]), AT_SYMLINK_NOFOLLOW));
}

static void visit(struct directory *d, const char *target, char *listing, char *buffers) {
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, counts[2];
    char *names[2][TOGETHER];
    struct stat seen;
    d->from = openat(d->above ? d->above->from : AT_FDCWD, d->name, flags | (has('a') ? 0 : O_NOATIME));
    d->to = openat(d->above ? d->above->to : AT_FDCWD, d->above ? d->name : target, flags);
    need(d->from >= 0 && d->to >= 0 && !fstat(d->from, &d->facts) && !fstat(d->to, &seen), d->name);
    for (long got; (got = syscall(SYS_getdents64, d->from, listing, LISTING)) > 0;) {
        counts[0] = counts[1] = 0;
        for (long at = 0; at < got;) {
            struct entry *entry = (void *)(listing + at);
            int is_link = entry->type == DT_LNK, is_last = (at += entry->length) == got;
            if (entry->type != DT_DIR) {
                names[is_link][counts[is_link]++] = entry->name;
            } else if (strcmp(entry->name, ".") && strcmp(entry->name, "..")) {
                need(!mkdirat(d->to, entry->name, 01700), entry->name);
                atomic_fetch_add(&d->pending, 1);
                found(d, entry->name);
            }
            for (int kind = 0; kind < 2; kind++) {
                if (counts[kind] < (is_last ? 1 : TOGETHER)) continue;
                kind ? symlinks(d, names[kind], counts[kind]) : files(d, names[kind], counts[kind], buffers);
                counts[kind] = 0;
            }
        }
    }
    piece_done(d);
}

static void *work(void *target) {
    char *listing = malloc(LISTING), *buffers = malloc(TOGETHER * BLOCK);
    pthread_mutex_lock(&lock);
    for (;;) {
        for (; !ready && busy; idle--) idle++, pthread_cond_wait(&changed, &lock);
        struct directory *next = ready;
        if (!next) break;
        ready = next->next, busy++;
        pthread_mutex_unlock(&lock);
        visit(next, target, listing, buffers);
        pthread_mutex_lock(&lock);
        busy--;
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(int count, char **words) {
    if (count != 5) return 2;
    calls = words[4];
    umask(0);
    need(!mkdir(words[2], 01700), words[2]);
    found(0, words[1]);
    pthread_t others[64];
    int threads = atoi(words[3]);
    for (int i = 1; i < threads && i < 64; i++) pthread_create(&others[i], 0, work, words[2]);
    work(words[2]);
    for (int i = 1; i < threads && i < 64; i++) pthread_join(others[i], 0);
    return 0;
}
