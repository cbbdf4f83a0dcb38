// A disk whose sync takes 1 ms, whatever the real disk does. Loaded with LD_PRELOAD by imports.rs.
#include <time.h>

static int wait_for_the_disk(void) {
    struct timespec rest = {0, 1000000};
    while (nanosleep(&rest, &rest)) {
    }
    return 0;
}

int fsync(int fd) {
    (void)fd;
    return wait_for_the_disk();
}

int fdatasync(int fd) {
    (void)fd;
    return wait_for_the_disk();
}
