//! CRC-64 of ECMA-182, reflected, as archives use it.

const POLYNOMIAL: u64 = 0xC96C_5795_D787_0F42;

const TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let (mut crc, mut bit) = (i as u64, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Crc64(u64);

impl Crc64 {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0 = !bytes.iter().fold(!self.0, |crc, b| TABLE[usize::from(crc as u8 ^ b)] ^ (crc >> 8));
    }
    /// As the `int64` of an archive.
    pub(crate) fn value(self) -> i64 {
        self.0 as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue_comes_out() {
        let mut crc = Crc64::default();
        crc.add(b"12345");
        crc.add(b"6789");
        assert_eq!(crc.value() as u64, 0x995D_C9BB_DF19_39FA);
    }
}
