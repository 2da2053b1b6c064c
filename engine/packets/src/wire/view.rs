//! Views of headers: a header's length is checked once, when its view is made; its fields are then read and written by
//! name.

use std::marker::PhantomData;
use std::ops::Range;

/// A kind of header.
pub trait Header: Sized {
    /// Its length, without options.
    const BYTES: usize;

    /// The header that begins at byte `at` of `frame`; `None` where the frame ends before the header does.
    #[inline(always)]
    fn at(frame: &[u8], at: usize) -> Option<View<Self, &[u8]>> {
        let bytes = frame.get(at..at.checked_add(Self::BYTES)?)?;
        Some(View { bytes, header: PhantomData })
    }

    /// As [`Self::at`], for writing.
    #[inline(always)]
    fn at_mut(frame: &mut [u8], at: usize) -> Option<View<Self, &mut [u8]>> {
        let bytes = frame.get_mut(at..at.checked_add(Self::BYTES)?)?;
        Some(View { bytes, header: PhantomData })
    }

    /// A new header of zeros behind `bytes`.
    fn append(bytes: &mut Vec<u8>) -> View<Self, &mut [u8]> {
        let at = bytes.len();
        bytes.resize(at + Self::BYTES, 0);
        View { bytes: &mut bytes[at..], header: PhantomData }
    }
}

/// A header's bytes, exactly as many as it has.
#[derive(Debug)]
pub struct View<H, B> {
    bytes: B,
    header: PhantomData<H>,
}

impl<H: Header, B: AsRef<[u8]>> View<H, B> {
    /// The value of a field.
    #[inline(always)]
    pub fn get<F: Named<H>>(&self, field: F) -> F::Value {
        field.read(&self.bytes.as_ref()[..H::BYTES])
    }

    /// The header as it is.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes.as_ref()[..H::BYTES]
    }
}

impl<H: Header, B: AsMut<[u8]>> View<H, B> {
    /// Writes a field.
    #[inline(always)]
    pub fn set<F: Named<H>>(&mut self, field: F, value: F::Value) {
        field.write(&mut self.bytes.as_mut()[..H::BYTES], value);
    }
}

/// A field that the header `H` has.
pub trait Named<H> {
    type Value;
    fn read(self, header: &[u8]) -> Self::Value;
    fn write(self, header: &mut [u8], value: Self::Value);
    /// Where it stands, from the header's first byte on.
    fn span(self) -> Span;
}

/// Where a field stands: some bits of the big-endian number in `bytes` bytes from `at` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub at: usize,
    pub bytes: usize,
    /// Bits below the field.
    pub shift: u32,
    pub bits: u32,
}

/// A field of whole bytes: a big-endian number or an address.
#[derive(Debug)]
pub struct Field<H, T> {
    at: usize,
    of: PhantomData<(H, T)>,
}

impl<H, T> Clone for Field<H, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H, T> Copy for Field<H, T> {}

impl<H: Header, T> Field<H, T> {
    /// `at` bytes after the header's first; must be within the header, which is checked when a constant is compiled.
    pub(super) const fn new(at: usize) -> Self {
        assert!(at + size_of::<T>() <= H::BYTES, "the field reaches beyond its header");
        Self { at, of: PhantomData }
    }

    /// The field's first byte in a frame, where the header begins at byte `header`.
    #[inline(always)]
    pub const fn offset(self, header: usize) -> usize {
        header + self.at
    }

    /// The field's bytes in a frame, where the header begins at byte `header`.
    #[inline(always)]
    pub const fn range(self, header: usize) -> Range<usize> {
        header + self.at..header + self.at + size_of::<T>()
    }
}

impl<H: Header, T: Value> Named<H> for Field<H, T> {
    type Value = T;

    #[inline(always)]
    fn read(self, header: &[u8]) -> T {
        T::decode(&header[self.at..])
    }

    #[inline(always)]
    fn write(self, header: &mut [u8], value: T) {
        value.encode(&mut header[self.at..]);
    }

    fn span(self) -> Span {
        Span { at: self.at, bytes: size_of::<T>(), shift: 0, bits: 8 * size_of::<T>() as u32 }
    }
}

/// A field of some bits, of the number in at most four bytes.
#[derive(Debug, Clone, Copy)]
pub struct Bits<H> {
    span: Span,
    of: PhantomData<H>,
}

impl<H: Header> Bits<H> {
    /// `bits` bits, `shift` above the lowest, of the big-endian number in `bytes` bytes from `at` on.
    pub(super) const fn new(at: usize, bytes: usize, shift: u32, bits: u32) -> Self {
        assert!(at + bytes <= H::BYTES && bytes <= 4, "the field reaches beyond its header");
        assert!(shift + bits <= 8 * bytes as u32 && bits < 32, "the field reaches beyond its bytes");
        Self { span: Span { at, bytes, shift, bits }, of: PhantomData }
    }

    const fn mask(self) -> u32 {
        (1 << self.span.bits) - 1
    }
}

impl<H: Header> Named<H> for Bits<H> {
    type Value = u32;

    #[inline(always)]
    fn read(self, header: &[u8]) -> u32 {
        let Span { at, bytes, shift, .. } = self.span;
        header[at..at + bytes].iter().fold(0, |number, byte| number << 8 | u32::from(*byte)) >> shift & self.mask()
    }

    #[inline(always)]
    fn write(self, header: &mut [u8], value: u32) {
        let Span { at, bytes, shift, .. } = self.span;
        write_number(&mut header[at..at + bytes], shift, self.mask().into(), value.into());
    }

    fn span(self) -> Span {
        self.span
    }
}

/// What a field of whole bytes may hold.
pub trait Value: Copy {
    /// From the first bytes of `bytes`, of which there are enough.
    fn decode(bytes: &[u8]) -> Self;
    /// Into the first bytes of `bytes`, of which there are enough.
    fn encode(self, bytes: &mut [u8]);
}

impl<const N: usize> Value for [u8; N] {
    #[inline(always)]
    fn decode(bytes: &[u8]) -> Self {
        let mut value = [0; N];
        value.copy_from_slice(&bytes[..N]);
        value
    }

    #[inline(always)]
    fn encode(self, bytes: &mut [u8]) {
        bytes[..N].copy_from_slice(&self);
    }
}

macro_rules! number {
    ($($number:ty),*) => {
        $(impl Value for $number {
            #[inline(always)]
            fn decode(bytes: &[u8]) -> Self {
                Self::from_be_bytes(Value::decode(bytes))
            }

            #[inline(always)]
            fn encode(self, bytes: &mut [u8]) {
                self.to_be_bytes().encode(bytes);
            }
        })*
    };
}

number!(u8, u16, u32, u128);

/// Whether the 16-bit number at byte `at` is `value`; false where the frame ends before it.
#[inline(always)]
pub fn is_u16_at(frame: &[u8], at: usize, value: u16) -> bool {
    frame.get(at..).and_then(|rest| rest.first_chunk()).is_some_and(|bytes| u16::from_be_bytes(*bytes) == value)
}

/// Writes a 16-bit number to byte `at`; a frame that ends before it is left alone.
#[inline(always)]
pub fn write_u16(frame: &mut [u8], at: usize, value: u16) {
    if let Some(bytes) = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *bytes = value.to_be_bytes();
    }
}

/// A big-endian number of at most 16 bytes.
pub fn read_number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Writes `value` into the masked bits of a big-endian number of at most 16 bytes.
pub fn write_number(bytes: &mut [u8], shift: u32, mask: u128, value: u128) {
    let all = read_number(bytes) & !(mask << shift) | (value & mask) << shift;
    let encoded = all.to_be_bytes();
    let first = encoded.len() - bytes.len();
    bytes.copy_from_slice(&encoded[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample;

    impl Header for Sample {
        const BYTES: usize = 6;
    }

    const LABEL: Bits<Sample> = Bits::new(0, 4, 4, 20);
    const PORT: Field<Sample, u16> = Field::new(4);

    #[test]
    fn a_frame_that_is_too_short_has_no_view() {
        let mut frame = [0; 9];
        assert!(Sample::at(&frame, 3).is_some() && Sample::at_mut(&mut frame, 3).is_some());
        assert!(Sample::at(&frame, 4).is_none() && Sample::at_mut(&mut frame, 4).is_none());
        assert!(Sample::at(&frame, usize::MAX).is_none() && Sample::at_mut(&mut frame, usize::MAX).is_none());
    }

    #[test]
    fn a_field_is_written_where_it_stands_and_read_back() {
        let mut frame = vec![0xFF];
        let mut view = Sample::append(&mut frame);
        view.set(PORT, 0x1234);
        view.set(LABEL, 0xF_ABCD);
        assert_eq!((view.get(PORT), view.get(LABEL)), (0x1234, 0xF_ABCD));
        assert_eq!(frame, [0xFF, 0x00, 0xFA, 0xBC, 0xD0, 0x12, 0x34]);
        assert_eq!((PORT.offset(1), PORT.range(1)), (5, 5..7));
    }

    #[test]
    fn the_bits_beside_a_field_are_left_alone() {
        let mut tag = [0xF0, 0x00];
        write_number(&mut tag, 0, 0x0FFF, 0x1ABC);
        assert_eq!(tag, [0xFA, 0xBC]);
        write_number(&mut tag, 13, 0x7, 2);
        assert_eq!(tag, [0x5A, 0xBC]);
        let mut label = [0x60, 0x00, 0x00, 0x01, 0xEE];
        write_number(&mut label[..4], 20, 0xFF, 0xB8);
        assert_eq!(label, [0x6B, 0x80, 0x00, 0x01, 0xEE]);
    }

    #[test]
    fn a_number_outside_of_the_frame_is_no_number_and_not_written() {
        let mut frame = [1, 2, 3];
        assert!(is_u16_at(&frame, 1, 0x0203) && !is_u16_at(&frame, 1, 0x0302));
        assert!(!is_u16_at(&frame, 2, 0x0300) && !is_u16_at(&frame, usize::MAX, 0));
        write_u16(&mut frame, 2, 0xFFFF);
        write_u16(&mut frame, usize::MAX, 0xFFFF);
        write_u16(&mut frame, 0, 0x0A0B);
        assert_eq!(frame, [0x0A, 0x0B, 3]);
    }
}
