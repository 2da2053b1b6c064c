// What the programs and the process share (src/xdp/records.rs). `sent` is in ticks of 16 ns, of
// which it has the low 32 bits: nothing may take 34 s.
#pragma once

#include <linux/types.h>

#define TICK_BITS 4
#define SENDERS 64 // threads of the process that send, at most
#define BLANK_BYTES 128 // of the frames that the first of them begins with; each next one has one more
#define PLANNED 65536 // entries of a sender's ring of what has its time
#define URGENT 4096 // entries of its ring of what is sent at once
#define LATEST_NS 500000000 // what has its time is begun later by less than this
#define AWAY_NS 10000000 // a sender that is later than this was away, and what was due meanwhile goes out at once
#define UPSET_NS 100000000 // for so long that may upset a DUT
#define CPUS 1024
#define OBJECTS 16
#define MOST_REQUEST 512 // bytes of a request
#define TIMES_BITS 37 // times of 137 s and more count as the longest
#define TIMES_BUCKETS 28672 // 1024 for each power of two: three digits

enum state {
	FREE, // nobody's
	OPENING, // SYN sent, or SYN received
	ASKED, // a request is under way, or an answer
	IDLE,
	CLOSING, // answered; the peer's FIN is to come
	LAST_ACK, // our FIN is sent
};

enum flag {
	MEASURED = 1, // due in the sustain phase
	ACKNOWLEDGED = 2, // the peer has all that was sent
	BEGUN = 4, // the first byte of the answer came
	TIMED = 8, // the first byte of this exchange counts
	HELD = 16, // asked while all are held
	CLOSES = 32, // the connection ends after its last exchange
	KEPT = 64, // the first exchange of a connection that is held: it is complete after the second
	WAITED = 128, // of work: the request waited for its connection, and its lateness is not the process's
	NARROW = 128, // of a record: the peer's window was too small for a request, which is not sent yet
};

enum server_flag {
	LAST = 1, // the connection ends with this answer, which says so
	ENDED_BY_PEER = 2, // its FIN came
	SHUT = 4, // the peer's window was too small
};

// `control` of a record: the state, its flags, and how often the record was used. One that is not FREE is BUSY while a
// program works on it, so that one CPU does, whichever gets its segments or sends them again.
#define CONTROL(state, flags, use) ((__u32)(state) | (__u32)(flags) << 8 | (__u32)(use) << 16)
#define BUSY 0x80
#define BEGUN_LATE 0x40 // beside the state: when its sender had been away
#define STATE(control) ((control) & 0x3F)
#define FLAGS(control) ((control) >> 8 & 0xFF)
#define USE(control) ((control) >> 16)

struct client {
	__u64 due_ns; // when the exchange was
	__u32 control;
	__u32 sent; // when the SYN or the request was sent first
	__u32 next; // of the bytes that we send
	__u32 expected; // the next byte of the peer
	__u32 left; // bytes of the answer's body that are to come
	__u16 object;
	__u16 exchanges; // that are to be asked for
};

// In place of a use, `control` has the most bytes of a segment.
struct server {
	__u64 key; // IPv4: the client's address and both ports; IPv6: a hash of them. 0: free
	__u32 control;
	__u32 first; // where the present answer begins, or the next one
	__u32 expected; // the next byte of the peer
	__u32 body : 24; // bytes of the body
	__u32 repeats : 8; // acknowledgements that said nothing new
	__u32 acknowledged : 17; // bytes of the answer, our FIN among them
	__u32 under_way : 15; // the bytes after these
	__u16 sent; // when the last segment was, in 2^20 ticks (16.8 ms)
	__u8 neighbour; // where frames to it go: an index of `neighbours`
	__u8 tries; // how often what waits for the peer was sent; 0: nothing waits
};

// Of IPv6 the key is a hash, so that the address is kept beside it.
struct peer {
	__u8 address[16];
	__u16 remote, local;
	__u32 padding;
};

enum kind {
	OPEN = 1, // begin a connection by its SYN
	ASK, // send a request on an idle connection
	RESEND, // what was not acknowledged
	GIVE_UP, // the connection failed by its time, unless it has just gone on
	RESET, // end an idle connection
};

struct work {
	__u64 due_ns;
	__u32 slot;
	__u16 object;
	__u16 exchanges;
	__u8 kind;
	__u8 flags;
	__u16 use;
	__u32 sent; // of the record, when it was found to take too long
};

// A failure is counted twice as far from FAILED as its number, and one farther where it is measured.
enum failure {
	REFUSED,
	UNREACHABLE,
	CONNECT_TIMEOUT,
	RESET_BY_PEER,
	SHORT,
	RESPONSE_TIMEOUT,
	STATUS,
	LENGTH,
	CONTENT,
	NOT_HTTP,
	LOST,
	LATE, // no connection came about, and its sender had been away
	FAILURES,
};

enum counter {
	OPENED,
	ENDED,
	COMPLETED, // the next one: measured
	COMPLETED_MEASURED,
	IN_TIME,
	BODY_BYTES, // in the sustain phase
	ALL_BYTES,
	HELD_ANSWERED,
	KEPT_ANSWERED, // the first exchanges of connections that are held
	SENT,
	RESENT,
	NOT_EXPECTED, // segments that belong to no connection
	REPEATED, // segments that were there before, or came too early
	DAMAGED, // by their checksum
	ACCEPTED,
	REQUESTS,
	FULL, // SYNs without a record
	TAKEN, // records for connections that a SYN began
	FAILED,
	COUNTERS = FAILED + 2 * FAILURES,
};

// Of one CPU, which alone writes them.
struct counts {
	__u64 of[COUNTERS];
} __attribute__((aligned(64)));

enum times { CONNECT, FIRST_BYTE, LAST_BYTE, LATENESS, KINDS_OF_TIMES };

struct settings {
	__u64 own[2], peer[2]; // addresses; of IPv4 in the first four bytes
	__u8 own_mac[6], peer_mac[6];
	__u16 first_port, ports; // of the server
	__u16 first_local, locals; // of the client
	__u32 seed;
	__u32 buckets; // of the server, a power of two
	__u32 segment_bytes; // the most of one segment
	__u32 resets; // whether the client ends connections by a RST
	__u64 sustain_from_ns, sustain_to_ns;
};

// How many entries of each ring of a sender were written so far.
struct written {
	__u32 planned, urgent;
} __attribute__((aligned(64)));

// How many of them were done; those that could not be keep their kind.
struct progress {
	__u32 planned, urgent;
	__u64 upset_until_ns; // after the sender was away
} __attribute__((aligned(64)));

struct request {
	__u16 bytes[2]; // of the request, and of the one that ends the connection
	__u32 sums[2]; // of their 16-bit words
	__u32 body; // bytes of the body of the answer
	__u8 text[2][MOST_REQUEST];
};
