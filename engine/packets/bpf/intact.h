// Whether a frame is as it was sent: Template::is_intact, by what the engine made of it (xdp/receiver/stream.rs).
#pragma once

#include "numbers.h"
#include "owner.h"

// A frame in one page: XDP programs see no more at once.
#define MOST_PATTERN_BLOCKS 15
#define PATTERN_BLOCK 256
#define MOST_OFFSET 0x1FFF

static __always_inline __u8 pattern_byte(__u32 index)
{
	return (__u8)(index * 131 + 89);
}

static __always_inline __u64 pattern_word(__u32 index)
{
	__u64 word = 0;

	for (int byte = 7; byte >= 0; byte--)
		word = word << 8 | pattern_byte(index + byte);
	return word;
}

// Whether all bytes from `from` on are the pattern, which repeats itself after 256 bytes.
VERIFIED_ONCE int has_pattern(struct xdp_md *context, __u32 from)
{
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	__u64 differences = 0;
	__u8 *at;

	if (from > 0x3FF)
		return 0;
	for (__u32 block = 0; block < MOST_PATTERN_BLOCKS; block++) {
		// A pointer with a bound of its own in each block: so all ways out of the loop look alike to the verifier,
		// which follows only one of them.
		asm volatile("" : "+r"(from));
		at = data + (from & MOST_OFFSET);
		if ((void *)(at + PATTERN_BLOCK) > end)
			break;
#pragma clang loop unroll(full)
		for (__u32 word = 0; word < PATTERN_BLOCK / 8; word++)
			differences |= *(__u64 *)(at + 8 * word) ^ pattern_word(8 * word);
		if (differences)
			return 0;
		from += PATTERN_BLOCK;
	}
	asm volatile("" : "+r"(from));
	at = data + (from & MOST_OFFSET);
	// Eight bytes further each byte of a word is greater by 8 * 131.
	__u64 expected = pattern_word(0);
	__u32 index = 0;

	for (__u32 word = 0; word < PATTERN_BLOCK / 8; word++) {
		if ((void *)(at + 8) > end)
			break;
		differences |= *(__u64 *)at ^ expected;
		__u64 carry = expected & 0x8080808080808080ULL;
		expected = ((expected & 0x7F7F7F7F7F7F7F7FULL) + 0x1818181818181818ULL) ^ carry;
		index += 8;
		at += 8;
	}
	for (__u32 byte = 0; byte < 7; byte++) {
		if ((void *)(at + 1) > end)
			break;
		differences |= *at ^ pattern_byte(index);
		index++;
		at++;
	}
	return differences == 0;
}

static __always_inline int has_words(struct xdp_md *context, const struct word *words, __u32 count)
{
	void *end = (void *)(long)context->data_end;
	void *data = (void *)(long)context->data;

	for (__u32 number = 0; number < MOST_WORDS; number++) {
		const struct word *word = &words[number];
		__u64 *at;

		if (number >= count)
			break;
		at = data + (word->at & 0x1FF);
		if ((void *)(at + 1) > end || (*at ^ word->value) & word->mask)
			return 0;
	}
	return 1;
}

static __always_inline int has_lengths(struct xdp_md *context, const struct stream *stream, __u32 length)
{
	void *end = (void *)(long)context->data_end;
	void *data = (void *)(long)context->data;

	for (__u32 number = 0; number < MOST_LENGTHS; number++) {
		const struct length_field *field = &stream->length_field[number];
		__u16 *at;

		if (number >= stream->lengths)
			break;
		at = data + (field->at & 0x1FF);
		if ((void *)(at + 1) > end || bpf_ntohs(*at) != (__u16)(length - field->minus))
			return 0;
	}
	return 1;
}

// The field's bits in the front of a frame.
VERIFIED_ONCE int read_field(const struct shard *shard, const struct field *field, struct wide *found)
{
	struct wide number = { 0, 0 };

	if (!shard || !field || !found)
		return -1;

	for (__u32 byte = 0; byte < 16; byte++) {
		if (byte >= field->bytes)
			break;
		number.high = number.high << 8 | number.low >> 56;
		number.low = number.low << 8 | byte_at(shard, field->at + byte);
	}
	if (field->shift) {
		number.low = number.low >> (field->shift & 63) | number.high << ((64 - field->shift) & 63);
		number.high >>= field->shift & 63;
	}
	found->high = number.high & field->mask_high;
	found->low = number.low & field->mask_low;
	return 0;
}

// Values::of in traffic/varied_field.rs.
static __always_inline struct wide value_of(const struct field *field, __u32 flow)
{
	struct wide first = { field->first_high, field->first_low };
	__u64 index;

	if (field->is_drawn)
		index = product(scramble(field->order ^ scramble(flow)), field->count).high;
	else
		index = field->order && field->count ? flow / field->order % field->count : 0;
	return add_wide(first, product(index, field->step));
}

// Addresses, and ports where they can be seen. What agrees goes to the engine, which looks at the rest.
VERIFIED_ONCE int is_addressed_as_ours(const struct shard *shard, const struct stream *stream, __u32 length)
{
	int has_options;

	if (!shard || !stream || !stream->is_here || length < stream->address_length)
		return 0;
	has_options = byte_at(shard, ETHERNET_BYTES) != 0x45;
	for (__u32 number = 0; number < MOST_WORDS; number++) {
		const struct word *word = &stream->address_word[number];
		__u32 at = word->at & (SCRATCH_BYTES - 8);

		if (number >= stream->address_words)
			break;
		if ((*(const __u64 *)&shard->scratch[at] ^ word->value) & word->mask)
			return 0;
	}
	for (__u32 number = 0; number < MOST_FIELDS; number++) {
		const struct field *field = &stream->address_field[number];
		struct wide distance, found = { 0, 0 }, first = { field->first_high, field->first_low };

		if (number >= stream->address_fields)
			break;
		if (field->is_behind_options && has_options)
			continue;
		read_field(shard, field, &found);
		distance = subtract_wide(found, first);
		if (distance.high > field->span_high ||
		    (distance.high == field->span_high && distance.low > field->span_low))
			return 0;
	}
	return 1;
}

// Of a whole frame: whether it is addressed as its stream sends it.
VERIFIED_ONCE int has_own_addresses(struct xdp_md *context, const struct place *place, const struct stream *stream)
{
	struct shard *shard;

	if (!place || !stream)
		return 0;
	shard = AT(shards, place->number);
	if (!shard)
		return 0;
	copy_front(context, shard, place->length);
	return is_addressed_as_ours(shard, stream, place->length);
}

VERIFIED_ONCE int has_field(const struct shard *shard, const struct field *field, __u32 flow)
{
	struct wide found = { 0, 0 }, sent;

	if (!shard || !field)
		return 0;
	read_field(shard, field, &found);
	sent = value_of(field, flow);
	return found.high == (sent.high & field->mask_high) && found.low == (sent.low & field->mask_low);
}

// The sum of a range of the frame's front in words of 16 bits, as an odd or an even place begins.
VERIFIED_ONCE __u64 sum_range(const struct shard *shard, const struct summed *range)
{
	__u64 sum = 0;

	if (!shard || !range)
		return 0;
	for (__u32 byte = 0; byte < 16; byte++) {
		if (byte >= range->length)
			break;
		__u32 value = byte_at(shard, range->from + byte);

		sum += (byte + range->is_odd) & 1 ? value : value << 8;
	}
	return sum;
}

VERIFIED_ONCE int has_sum(const struct shard *shard, const struct sum *sum)
{
	__u64 total;
	__u16 checksum;

	if (!shard || !sum)
		return 0;
	total = sum->constant;
	for (__u32 number = 0; number < MOST_SUMMED; number++) {
		if (number >= sum->ranges)
			break;
		total += sum_range(shard, &sum->range[number]);
	}
	for (__u32 fold = 0; fold < 4; fold++)
		total = (total & 0xFFFF) + (total >> 16);
	checksum = ~total;
	if (!checksum && sum->is_never_zero)
		checksum = 0xFFFF;
	return number_at(shard, sum->at) == checksum;
}

VERIFIED_ONCE int has_what_is_carried(struct xdp_md *context, const struct place *place, const struct stream *stream,
				       __u32 flow)
{
	struct shard *shard;

	if (!place || !stream)
		return 0;
	shard = AT(shards, place->number);
	if (!shard)
		return 0;
	copy_front(context, shard, place->length);
	for (__u32 number = 0; number < MOST_FIELDS; number++) {
		if (number >= stream->fields)
			break;
		if (!has_field(shard, &stream->field[number], flow))
			return 0;
	}
	for (__u32 number = 0; number < MOST_SUMS; number++) {
		if (number >= stream->sums)
			break;
		if (!has_sum(shard, &stream->sum[number]))
			return 0;
	}
	return 1;
}

// Whether the headers lead to a signature at all, where they are not those that were sent.
VERIFIED_ONCE int leads_somewhere(struct xdp_md *context, const struct place *place, __u32 search)
{
	struct shard *shard;
	__u32 offset;

	if (!place)
		return 0;
	shard = AT(shards, place->number);
	if (!shard)
		return 0;
	copy_front(context, shard, place->length);
	offset = search == CARRIED ? carried_offset(shard, place->length) : payload_offset(shard, place->length);
	return offset + SIGNATURE_BYTES <= place->length;
}

static __always_inline int is_length(const struct stream *stream, __u32 number, __u32 length)
{
	__u64 *marked;

	if (stream->length)
		return length == stream->length;
	if (length >= 64 * LENGTH_WORDS)
		return 0;
	marked = AT(lengths, number * LENGTH_WORDS + length / 64);
	return marked && *marked >> (length & 63) & 1;
}

// `number` is the stream's, `flow` the flow's in it.
static __always_inline int is_intact(struct xdp_md *context, const struct place *place, const struct stream *stream,
				     __u32 number, __u32 flow)
{
	if (!is_length(stream, number, place->length) || !has_lengths(context, stream, place->length) ||
	    !has_words(context, stream->word, stream->words) ||
	    !has_pattern(context, stream->signature + SIGNATURE_BYTES))
		return 0;
	if ((stream->fields || stream->sums) && !has_what_is_carried(context, place, stream, flow))
		return 0;
	return stream->search == ANYWHERE || has_words(context, stream->found_word, stream->found_words) ||
	       leads_somewhere(context, place, stream->search);
}
