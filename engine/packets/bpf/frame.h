// Writes a frame, as src/frame_writer.rs does: its template, what its flow differs in, signature and checksums.
#pragma once

#include "generate_maps.h"

static __always_inline __u64 halves(__u64 word)
{
	return (word & 0xFFFFFFFF) + (word >> 32);
}

static __always_inline __u16 fold_sum(__u64 sum)
{
	sum = halves(sum);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	return (__u16)sum;
}

// RFC 1624: what the signature adds to the sum of everything else that the checksum covers.
static __always_inline __u16 checksum(__u64 constant, const struct signature_words *words)
{
	__u16 result = ~fold_sum(constant + halves(words->front) + halves(words->lower));

	// RFC 768, RFC 8200 8.1: a checksum of zero would say that there is none, and is sent as 0xFFFF.
	return result ? result : 0xFFFF;
}

// Copies a template into a frame of at most SHORT_BYTES: a call of the kernel costs more than that many bytes.
ONCE int write_short(struct xdp_md *context, __u32 number)
{
	const __u8 *template = bpf_map_lookup_elem(&templates_map, &number);
	__u8 *place = (__u8 *)(long)context->data;
	__u8 *end = (__u8 *)(long)context->data_end;
	__u32 word = 0;

	if (!template)
		return 0;
	for (; word < SHORT_BYTES / 8 - 1; word++) {
		if (place + 8 > end)
			break;
		*(__u64 *)place = *(const __u64 *)template;
		place += 8;
		template += 8;
	}
	for (__u32 byte = 0; byte < 8; byte++) {
		if (place + 1 > end)
			break;
		*place++ = *template++;
	}
	return 1;
}

// Makes the frame so long, and copies the template of this number into it.
static __always_inline int write_template(struct xdp_md *context, __u32 number, __u32 length)
{
	const __u64 *template = bpf_map_lookup_elem(&templates_map, &number);
	int longer = (int)length - (int)(context->data_end - context->data);
	__u8 *data, *end;

	if (!template || length < SIGNATURE_BYTES || length > LARGEST_FRAME || length > constants.template_bytes)
		return 0;
	if (longer && bpf_xdp_adjust_tail(context, longer))
		return 0;
	data = (__u8 *)(long)context->data;
	end = (__u8 *)(long)context->data_end;
	if (length == 60 && data + 60 <= end) {
		// Frames of 64 bytes with FCS are those of the highest rates: no call for them.
		for (__u32 word = 0; word < 7; word++)
			*(__u64 *)(data + 8 * word) = template[word];
		*(__u32 *)(data + 56) = *(const __u32 *)(template + 7);
		return 1;
	}
	if (length <= SHORT_BYTES && SHORT_BYTES <= constants.template_bytes)
		return write_short(context, number);
	return !bpf_xdp_store_bytes(context, 0, (void *)template, length);
}

static __always_inline int write_signature(struct xdp_md *context, __u32 at, const struct signature_words *words)
{
	__u8 *place = (__u8 *)(long)context->data + (at & 0xFFF);

	if (place + SIGNATURE_BYTES > (__u8 *)(long)context->data_end)
		return 0;
	*(__u64 *)place = words->front;
	*(__u64 *)(place + 8) = words->lower;
	return 1;
}

static __always_inline int write_checksum(struct xdp_md *context, __u32 at, __u16 value)
{
	__u8 *place = (__u8 *)(long)context->data + (at & 0xFFF);

	if (place + 2 > (__u8 *)(long)context->data_end)
		return 0;
	*(__u16 *)place = value;
	return 1;
}

// Writes what a flow has in the place of what the template has: images of varied frames are differences from it, so
// that lengths, which differ between variants, stay.
static __always_inline int write_images(struct xdp_md *context, const struct sender *sender, int are_differences)
{
	__u32 key = sender->first_image + sender->flow * sender->pieces;
	__u8 *place = (__u8 *)(long)context->data + (sender->image_at & 0xFFF);
	__u8 *end = (__u8 *)(long)context->data_end;

#pragma clang loop unroll(disable)
	for (__u32 piece = 0; piece < MAXIMUM_PIECES; piece++) {
		const struct image *image;

		if (piece >= sender->pieces)
			break;
		image = bpf_map_lookup_elem(&images_map, &key);
		if (!image || place + IMAGE_BYTES > end)
			return 0;
		*(__u64 *)place = image->words[0] ^ (are_differences ? *(__u64 *)place : 0);
		*(__u64 *)(place + 8) = image->words[1] ^ (are_differences ? *(__u64 *)(place + 8) : 0);
		place += IMAGE_BYTES;
		key++;
	}
	return 1;
}

static __always_inline int write_checksums(struct xdp_md *context, const struct sender *sender,
					   const struct variant *variant, const struct signature_words *words)
{
	__u64 signature = fold_sum(halves(words->front) + halves(words->lower));

#pragma clang loop unroll(disable)
	for (__u32 number = 0; number < MAXIMUM_CHECKSUMS; number++) {
		const struct checksum *checksum = &variant->checksum[number];
		__u64 sum = checksum->sum;
		__u16 result;

		if (number >= variant->checksums)
			break;
		if (number < sender->checksums) {
			__u32 key = sender->first_sum + sender->flow * sender->checksums + number;
			const __u64 *of_flow = bpf_map_lookup_elem(&sums_map, &key);

			if (!of_flow)
				return 0;
			sum += *of_flow;
		}
		// RFC 1071 2 (B): bytes that are off by one give the byte-swapped sum.
		if (checksum->kind & CHECKSUM_SIGNED)
			sum += checksum->kind & CHECKSUM_ODD ? (signature & 0xFF) << 8 | signature >> 8 : signature;
		result = ~fold_sum(sum);
		if (!result && checksum->kind & CHECKSUM_NEVER_ZERO)
			result = 0xFFFF;
		if (!write_checksum(context, checksum->at, result))
			return 0;
	}
	return 1;
}

// A frame of a stream whose frames differ in size, or come from a file.
ONCE int write_varied(struct xdp_md *context, struct sender *sender, __u64 time_ns)
{
	const struct variant *variant;
	struct signature_words words;
	__u32 flow, sequence, key;
	const __u64 *number;
	__u64 place;

	if (!sender)
		return 0;
	flow = sender->first_flow;
	sequence = (__u32)sender->sequence;
	place = sender->place + sender->turned;
	if (place >= sender->order_length)
		place -= sender->order_length;
	key = sender->first_order + (__u32)place;
	number = bpf_map_lookup_elem(&order_map, &key);
	if (!number)
		return 0;
	key = sender->first_variant + (__u32)*number;
	variant = bpf_map_lookup_elem(&variants_map, &key);
	if (!variant || !write_template(context, key, variant->length))
		return 0;
	if (variant->of_flow) {
		__u64 lap = sender->period;

		if (lap >= variant->laps && variant->laps)
			lap %= variant->laps;
		flow += variant->flow;
		sequence = (__u32)lap * variant->of_flow + variant->turn;
	} else {
		flow += sender->flow;
		if (!write_images(context, sender, 1))
			return 0;
	}
	words = sign(&settings.keys, settings.mark, flow, sequence, time_ns);
	return write_signature(context, variant->signature_at, &words) &&
	       write_checksums(context, sender, variant, &words);
}
