/* The wall clock of a server, so many microseconds from the true one as stand in a file. Loaded before the C library. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Nothing until it is mapped, which is later than the first reading of a clock. */
static volatile int64_t *offset;

__attribute__((constructor)) static void map(void) {
    const char *path = getenv("LEADER_TESTS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) offset = mapped;
    close(file);
}

static int64_t now_us(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + (offset ? *offset : 0);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    int64_t now = now_us();
    time->tv_sec = now / 1000000;
    time->tv_usec = now % 1000000;
    return 0;
}

time_t time(time_t *seconds) {
    time_t now = now_us() / 1000000;
    if (seconds) *seconds = now;
    return now;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (clock != CLOCK_REALTIME) return syscall(SYS_clock_gettime, clock, time);
    int64_t now = now_us();
    time->tv_sec = now / 1000000;
    time->tv_nsec = now % 1000000 * 1000;
    return 0;
}
