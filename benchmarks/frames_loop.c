/* The plainest way to write and read frames, and to copy memory: what nicbench-frames is compared with.
 *
 *     frames_loop write|read DIRECTORY FRAMES FRAME_BYTES REQUEST_BYTES    files DIRECTORY/f.0, f.1, ...
 *     frames_loop copy-in|copy-out FRAMES FRAME_BYTES REQUEST_BYTES        between a buffer and memory as large as the frames
 *
 * Prints the nanoseconds that it took. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static char *memory(size_t bytes) {
    char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) fail("mmap");
    madvise(start, bytes, MADV_HUGEPAGE);
    /* Touched before anything is timed, and not all alike. */
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) *(uint64_t *)(start + at) = at * 0x9e3779b97f4a7c15u;
    return start;
}

static uint64_t frames(int writes, const char *directory, long count, size_t frame, size_t request) {
    char *buffer = memory(request);
    uint64_t begun = now_ns();
    for (long number = 0; number < count; number++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/f.%ld", directory, number);
        int file = open(path, writes ? O_WRONLY | O_CREAT : O_RDONLY, 0644);
        if (file < 0) fail(path);
        for (size_t at = 0; at < frame;) {
            size_t length = frame - at < request ? frame - at : request;
            ssize_t moved = writes ? pwrite(file, buffer, length, (off_t)at) : pread(file, buffer, length, (off_t)at);
            if (moved <= 0) fail(path);
            at += (size_t)moved;
        }
        if (close(file) != 0) fail(path);
    }
    return now_ns() - begun;
}

static uint64_t copies(int in, long count, size_t frame, size_t request) {
    size_t total = (size_t)count * frame;
    char *buffer = memory(request), *rest = memory(total);
    uint64_t begun = now_ns();
    for (size_t at = 0; at < total;) {
        size_t length = total - at < request ? total - at : request;
        if (in) memcpy(rest + at, buffer, length);
        else memcpy(buffer, rest + at, length);
        __asm__ volatile("" ::"r"(buffer), "r"(rest) : "memory");
        at += length;
    }
    return now_ns() - begun;
}

int main(int count, char **words) {
    uint64_t took;
    if (count == 6 && (!strcmp(words[1], "write") || !strcmp(words[1], "read")))
        took = frames(words[1][0] == 'w', words[2], atol(words[3]), strtoull(words[4], NULL, 10), strtoull(words[5], NULL, 10));
    else if (count == 5 && !strncmp(words[1], "copy-", 5))
        took = copies(!strcmp(words[1], "copy-in"), atol(words[2]), strtoull(words[3], NULL, 10), strtoull(words[4], NULL, 10));
    else
        return fprintf(stderr, "usage: see frames_loop.c\n"), 2;
    printf("%llu\n", (unsigned long long)took);
    return 0;
}
