// Stands between a process and its disk: writes down what is written and synced, and lets chosen
// calls fail. Loaded with LD_PRELOAD by the tests beside it.
//
//   SHIM_FILE   the database; its log has the same name with -wal behind
//   SHIM_LOG    where calls are written down: a head of 16 bytes, then the bytes
//   SHIM_FAIL   write:N:ERRNO:COUNT or sync:N:ERRNO:COUNT, N counts calls from 1
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static long calls[2];

// 0: the database, 1: its log, -1: something else.
static int which(int fd) {
    const char *file = getenv("SHIM_FILE");
    char link[64], path[4096];
    if (!file) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len < 0) return -1;
    path[len] = 0;
    size_t prefix = strlen(file);
    if (strncmp(path, file, prefix)) return -1;
    if (!path[prefix]) return 0;
    return strcmp(path + prefix, "-wal") ? -1 : 1;
}

static void note(char what, int file, uint64_t offset, const void *bytes, uint32_t len) {
    static int log = -1;
    const char *path = getenv("SHIM_LOG");
    if (!path) return;
    if (log < 0) log = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    unsigned char *record = malloc(16 + len);
    memset(record, 0, 16);
    record[0] = what;
    record[1] = file;
    memcpy(record + 4, &len, 4);
    memcpy(record + 8, &offset, 8);
    if (len) memcpy(record + 16, bytes, len);
    if (syscall(SYS_write, log, record, (size_t)16 + len) != (long)(16 + len)) abort();
    free(record);
}

// Whether this call is one of those that fail. kind 0: write, 1: sync.
static int fails(int kind) {
    const char *fail = getenv("SHIM_FAIL");
    long first, error, count;
    calls[kind]++;
    if (!fail || strncmp(fail, kind ? "sync:" : "write", 5)) return 0;
    if (sscanf(strchr(fail, ':'), ":%ld:%ld:%ld", &first, &error, &count) != 3) return 0;
    if (calls[kind] < first || calls[kind] >= first + count) return 0;
    errno = error;
    return 1;
}

static ssize_t write_at(int fd, const void *bytes, size_t len, off_t offset) {
    int file = which(fd);
    if (file < 0) return syscall(SYS_pwrite64, fd, bytes, len, offset);
    pthread_mutex_lock(&turn);
    ssize_t done = fails(0) ? -1 : syscall(SYS_pwrite64, fd, bytes, len, offset);
    if (done > 0) note('W', file, offset, bytes, done);
    pthread_mutex_unlock(&turn);
    return done;
}

static int sync_file(int fd, long call) {
    int file = which(fd);
    if (file < 0) return syscall(call, fd);
    pthread_mutex_lock(&turn);
    // Nothing has to reach the real disk: it stays powered.
    int done = fails(1) ? -1 : getenv("SHIM_LOG") ? 0 : syscall(call, fd);
    if (done == 0) note('S', file, 0, 0, 0);
    pthread_mutex_unlock(&turn);
    return done;
}

static int cut(int fd, off_t len) {
    int file = which(fd);
    pthread_mutex_lock(&turn);
    int done = syscall(SYS_ftruncate, fd, len);
    if (done == 0 && file >= 0) note('T', file, len, 0, 0);
    pthread_mutex_unlock(&turn);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset) { return write_at(fd, bytes, len, offset); }
ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset) { return write_at(fd, bytes, len, offset); }
int fsync(int fd) { return sync_file(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_file(fd, SYS_fdatasync); }
int ftruncate(int fd, off_t len) { return cut(fd, len); }
int ftruncate64(int fd, off_t len) { return cut(fd, len); }

ssize_t write(int fd, const void *bytes, size_t len) {
    if (fd == 1) {
        // What is printed is promised to the parent.
        pthread_mutex_lock(&turn);
        note('P', 0, 0, bytes, len);
        pthread_mutex_unlock(&turn);
    } else if (fd != 2 && which(fd) >= 0) {
        ssize_t done = write_at(fd, bytes, len, lseek(fd, 0, SEEK_CUR));
        if (done > 0) lseek(fd, done, SEEK_CUR);
        return done;
    }
    return syscall(SYS_write, fd, bytes, len);
}
