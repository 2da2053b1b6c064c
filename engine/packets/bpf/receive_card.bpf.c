// The receiver of a card that stamps every frame: an object of its own, since kernels before 6.3 know of no such stamps,
// and since it can be loaded for its interface alone.

#define CARD_STAMPS
#include "receive.bpf.c"
