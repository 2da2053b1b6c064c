//! How the program in the kernel recognises the frames of a stream: what is made of its template.

use crate::analyser::Expected;
use crate::error::{EngineError, ErrorKind};
use crate::sys::bpf::receiving::{
    ANYWHERE, CARRIED, Field, LengthField, MOST_FIELDS, MOST_LENGTHS, MOST_SUMMED, MOST_SUMS, MOST_WORDS, PAYLOAD,
    Stream, Sum, Summed, Word, zeroed,
};
use crate::template::AddressRange;
use crate::traffic::{FrameChecksum, Order, SignatureSearch, VariedField};

/// The front of a frame that the program copies to read fields in it.
const FRONT_BYTES: usize = 256;

/// The entry of a stream that arrives at `port`; where its flows, groups and lengths are is for the caller to fill in.
/// Also the lengths that its frames may have, where there are several.
pub fn entry(expected: &Expected, port: usize) -> Result<(Stream, Vec<usize>), EngineError> {
    if expected.copy_of.is_some() {
        return Err(refuse("frames that arrive at several ports", "use another driver"));
    }
    let mut stream: Stream = zeroed();
    stream.first_flow = expected.first_flow;
    stream.flows = expected.flows;
    if expected.receive_port != port {
        return Ok((stream, Vec::new()));
    }
    stream.is_here = 1;
    let intact = expected.template.intactness()?;
    let signature = intact.value.len();
    if signature + 16 > FRONT_BYTES {
        return Err(refuse(&format!("{signature} bytes of headers"), "leave some of the layers out"));
    }
    stream.signature = signature as u32;
    stream.length = if intact.lengths.len() == 1 { intact.lengths[0] as u32 } else { 0 };
    stream.search = match intact.search {
        SignatureSearch::Payload => PAYLOAD,
        SignatureSearch::Carried => CARRIED,
        SignatureSearch::At(_) => ANYWHERE,
        SignatureSearch::End => return Err(refuse("a signature at the end", "put it behind the headers")),
    };
    stream.words = put(&mut stream.word, words(&intact.value, &intact.mask), "bytes of headers")?;
    stream.found_words = put(&mut stream.found_word, words(&intact.value, &intact.leading), "bytes of headers")?;
    let lengths = intact.length_fields.iter().map(|(at, minus)| LengthField { at: *at as u32, minus: *minus as u32 });
    stream.lengths = put::<_, MOST_LENGTHS>(&mut stream.length_field, lengths.collect(), "fields of lengths")?;
    let fields = intact.fields.iter().map(field).collect();
    stream.fields = put::<_, MOST_FIELDS>(&mut stream.field, fields, "varied fields in what is carried")?;
    let sums = intact.checksums.iter().map(sum).collect::<Result<Vec<_>, _>>()?;
    stream.sums = put::<_, MOST_SUMS>(&mut stream.sum, sums, "checksums in what is carried")?;
    if let Some(bits) = expected.template.address_bits() {
        stream.address_length = bits.length as u32;
        let address_words = words(&bits.value, &bits.mask);
        stream.address_words = put(&mut stream.address_word, address_words, "bytes of addresses")?;
        let ranges = bits.ranges.iter().map(range).collect();
        stream.address_fields = put::<_, MOST_FIELDS>(&mut stream.address_field, ranges, "varied addresses")?;
    }
    let lengths = if intact.lengths.len() == 1 { Vec::new() } else { intact.lengths };
    Ok((stream, lengths))
}

fn put<T, const N: usize>(places: &mut [T; N], values: Vec<T>, what: &str) -> Result<u32, EngineError> {
    let count = values.len();
    if count > N {
        return Err(refuse(&format!("{count} {what} (the most is {N})"), "vary less, or use another driver"));
    }
    places.iter_mut().zip(values).for_each(|(place, value)| *place = value);
    Ok(count as u32)
}

/// The bits of `mask` in words of 8 bytes, those without any left out.
fn words(value: &[u8], mask: &[u8]) -> Vec<Word> {
    let number = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    };
    let places = value.chunks(8).zip(mask.chunks(8)).enumerate();
    let words = places.map(|(place, (value, mask))| Word {
        value: number(value),
        mask: number(mask),
        at: 8 * place as u32,
        padding: 0,
    });
    words.filter(|word| word.mask != 0).take(MOST_WORDS + 1).collect()
}

fn halves(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

fn field(field: &VariedField) -> Field {
    let (order, is_drawn) = match field.values.order {
        Order::InTurn { flows_per_value } => (flows_per_value, 0),
        Order::Drawn { seed } => (seed, 1),
    };
    Field {
        first: halves(field.values.first),
        span: [0; 2],
        mask: halves(field.mask),
        step: field.values.step,
        count: field.values.count,
        order,
        at: field.bytes.start as u32,
        bytes: field.bytes.len() as u32,
        shift: field.shift,
        is_drawn,
        is_behind_options: 0,
    }
}

fn range(range: &AddressRange) -> Field {
    Field {
        first: halves(range.first),
        span: halves(range.span),
        mask: halves(range.mask),
        step: 1,
        count: 1,
        order: 0,
        at: range.at as u32,
        bytes: range.bytes as u32,
        shift: range.shift,
        is_drawn: 0,
        is_behind_options: range.is_behind_options.into(),
    }
}

fn sum(check: &FrameChecksum) -> Result<Sum, EngineError> {
    let mut sum: Sum = Sum {
        constant: check.constant(),
        at: check.at as u32,
        is_never_zero: check.is_never_zero().into(),
        ranges: 0,
        padding: 0,
        range: [Summed { from: 0, length: 0, is_odd: 0, padding: 0 }; MOST_SUMMED],
    };
    let ranges = check.variable().iter().map(|(range, is_odd)| Summed {
        from: range.start as u16,
        length: range.len() as u16,
        is_odd: (*is_odd).into(),
        padding: 0,
    });
    sum.ranges = put(&mut sum.range, ranges.collect(), "varied fields under a checksum")?;
    Ok(sum)
}

fn refuse(what: &str, next: &str) -> EngineError {
    EngineError::new(ErrorKind::BadRequest, format!("the kernel's receiver does not check {what}"), next)
}
