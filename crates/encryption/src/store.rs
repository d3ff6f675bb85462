//! The key store: the data keys of a folder in one small file, sealed with the master key and replaced atomically.
//!
//! ```text
//!   PANDOKS1 │ length of the name u16 │ name of the master key │ salt, 32 bytes │ sealed │ crc32c u32
//!            sealed:  newest u64 │ count u32 │ (name u64, made ms u64, data key 32 bytes) …
//! ```
//! Sealed with HKDF-SHA-256(master key, salt) and a nonce of zero, under a salt drawn for each writing; all before it is associated data.
//!
//! The file is durable before the first byte that needs it is written, and written anew at each start (if there is room): who finds it
//! cannot know whether its name had reached the disk. A folder is encrypted from its first start on or never: with data and no
//! key store it is refused, and with a key store and no key, too.

use crate::keys::{DataKey, Keys, TAG, derived};
use crate::master::{MasterKey, MasterKeys};
use pando_base::limits::DATA_KEYS_MAX;
use pando_base::{Error, ErrorCode, Result};
use pando_env::disk::{make_folder, read_whole};
use pando_env::{Disk, Rng};
use ring::aead::{Aad, NONCE_LEN, Nonce};
use std::io::ErrorKind;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// The folder of logs and checkpoint file, which belong to it.
const DIR: &str = "journal";
pub const PATH: &str = "journal/keystore";
const NEW_PATH: &str = "journal/keystore.new";
const MAGIC: &[u8; 8] = b"PANDOKS1";
const SALT: usize = 32;
const ENTRY: usize = 8 + 8 + 32;
const INFO: &[u8] = b"PandoDB key store";

/// What a start wants beside the keys.
#[derive(Clone, Copy, Default, Debug)]
pub struct Wanted {
    /// A new data key; the older ones stay for what they have sealed.
    pub new_data_key: bool,
    /// Now, Unix time in milliseconds.
    pub now_ms: u64,
}

/// What a start has found and done.
pub struct Opened {
    pub keys: Arc<Keys>,
    /// There was no key store, and no data.
    pub is_new: bool,
    /// Name of the master key that sealed the store before, when it was another one.
    pub replaced: Option<String>,
}

struct Contents {
    newest: u64,
    keys: Vec<DataKey>,
}

/// For a server without encryption: the folder is not an encrypted one.
pub fn refuse_encrypted(disk: &dyn Disk) -> Result<()> {
    if !disk.exists(PATH) {
        return Ok(());
    }
    let text = format!(
        "the data in this folder is encrypted ({PATH} is there): start with --enableEncryption and the key file \
         that it was encrypted with (--encryptionKeyFile)"
    );
    Err(Error::new(ErrorCode::InvalidOptions, text))
}

/// The keys of a folder; of a new one they are made. Nothing but the key store is written, and that only when its master key
/// is known.
pub fn open(disk: &dyn Disk, masters: &dyn MasterKeys, rng: Arc<dyn Rng>, wanted: Wanted) -> Result<Opened> {
    let found = read_whole(disk, PATH)?;
    let is_new = found.is_none();
    let (mut id, mut master, mut contents) = match found {
        Some(bytes) => unseal(&bytes, masters)?,
        None => {
            refuse_plain(disk)?;
            let (id, master) = masters.create()?;
            (id, master, Contents { newest: 0, keys: Vec::new() })
        }
    };
    let mut replaced = None;
    if !is_new && masters.replaces(&id) {
        replaced = Some(id);
        (id, master) = masters.create()?;
    }
    if is_new || wanted.new_data_key {
        add_data_key(&mut contents, &*rng, wanted.now_ms)?;
    }
    let changed = is_new || wanted.new_data_key || replaced.is_some();
    match save(disk, &id, &master, &contents, &*rng) {
        // A full disk must not keep a server from starting, that data may be removed.
        Err(e) if e.code == ErrorCode::OutOfDiskSpace && !changed => disk.sync_dir(DIR)?,
        saved => saved?,
    }
    let keys = contents.keys(id, rng)?;
    Ok(Opened { keys, is_new, replaced })
}

/// The keys of a folder that is encrypted, for who reads in it, also while a server runs on it. Nothing is written.
pub fn look(disk: &dyn Disk, masters: &dyn MasterKeys, rng: Arc<dyn Rng>) -> Result<Arc<Keys>> {
    let bytes = read_whole(disk, PATH)?.ok_or_else(damaged)?;
    let (id, _, contents) = unseal(&bytes, masters)?;
    contents.keys(id, rng)
}

fn add_data_key(contents: &mut Contents, rng: &dyn Rng, now_ms: u64) -> Result<()> {
    if contents.keys.len() >= DATA_KEYS_MAX {
        let text = format!(
            "the key store holds {DATA_KEYS_MAX} data keys, which is the most: copy the data into an empty folder \
             (initial sync) to begin with one"
        );
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let (mut id, mut secret) = ([0; 8], Zeroizing::new([0; 32]));
    rng.fill(&mut id);
    rng.fill(&mut *secret);
    let key = DataKey { id: u64::from_le_bytes(id), made_ms: now_ms, secret };
    contents.newest = key.id;
    contents.keys.push(key);
    Ok(())
}

fn damaged() -> Error {
    let text = format!(
        "the key store {PATH} is damaged, and without it the data in this folder cannot be read. Put a copy of it \
         back (backups hold one), restore a backup, or, for a member of a replica set, empty the data folder and let it \
         copy the set's data"
    );
    Error::new(ErrorCode::InternalError, text)
}

/// A folder without a key store has no data either.
fn refuse_plain(disk: &dyn Disk) -> Result<()> {
    let names = match disk.list(DIR) {
        Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
        listed => listed?,
    };
    let data = names.iter().find(|name| !NEW_PATH.ends_with(&format!("/{name}")));
    let Some(data) = data else { return Ok(()) };
    let text = format!(
        "this folder holds data ({DIR}/{data}) and no key store ({PATH}). If it was written without encryption, \
         encryption cannot be switched on for it: start with an empty folder and let the member copy the set's data \
         (initial sync), or load a dump. If it was encrypted, its key store is missing: put it back"
    );
    Err(Error::new(ErrorCode::InvalidOptions, text))
}

fn unseal(bytes: &[u8], masters: &dyn MasterKeys) -> Result<(String, MasterKey, Contents)> {
    let parts = Parts::of(bytes)?;
    let Some(master) = masters.get(&parts.id)? else {
        let text = format!(
            "the data in this folder is encrypted with the master key {}, which {} is not. Start with the key that it \
             was encrypted with; to replace that key by this one, name its file too (--encryptionReplacedKeyFile)",
            parts.id,
            masters.describe()
        );
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    };
    let key = derived(master.bytes(), parts.salt, INFO);
    let mut sealed = Zeroizing::new(parts.sealed.to_vec());
    let opened = key.open_in_place(zero(), Aad::from(parts.head), &mut sealed);
    let contents = opened.ok().and_then(|plain| Contents::decode(plain)).ok_or_else(damaged)?;
    Ok((parts.id, master, contents))
}

struct Parts<'a> {
    id: String,
    salt: &'a [u8],
    /// All before the sealed part.
    head: &'a [u8],
    sealed: &'a [u8],
}

impl Parts<'_> {
    fn of(bytes: &[u8]) -> Result<Parts<'_>> {
        let Some((body, crc)) = bytes.split_last_chunk::<4>() else { return Err(damaged()) };
        let family = &MAGIC[..MAGIC.len() - 1];
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) || !body.starts_with(family) {
            return Err(damaged());
        }
        if !body.starts_with(MAGIC) {
            let text = format!("{PATH}: written by a later version, which this one cannot read");
            return Err(Error::new(ErrorCode::CannotUpgrade, text));
        }
        Parts::of_body(body).ok_or_else(damaged)
    }
    fn of_body(body: &[u8]) -> Option<Parts<'_>> {
        let len = usize::from(u16::from_le_bytes(*body.get(MAGIC.len()..)?.first_chunk()?));
        let name = MAGIC.len() + 2;
        let id = std::str::from_utf8(body.get(name..name + len)?).ok()?.to_owned();
        let (head, sealed) = body.split_at_checked(name + len + SALT)?;
        Some(Parts { id, salt: &head[name + len..], head, sealed })
    }
}

fn zero() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

impl Contents {
    fn keys(&self, master_key_id: String, rng: Arc<dyn Rng>) -> Result<Arc<Keys>> {
        let newest = self.keys.iter().find(|k| k.id == self.newest).ok_or_else(damaged)?;
        Ok(Arc::new(Keys::new(&self.keys, newest, master_key_id, rng)))
    }
    fn encode(&self) -> Zeroizing<Vec<u8>> {
        // As large as it gets, so that no copy is left behind by growing.
        let mut out = Vec::with_capacity(12 + self.keys.len() * ENTRY + TAG);
        out.extend_from_slice(&self.newest.to_le_bytes());
        out.extend_from_slice(&(self.keys.len() as u32).to_le_bytes());
        for key in &self.keys {
            out.extend_from_slice(&key.id.to_le_bytes());
            out.extend_from_slice(&key.made_ms.to_le_bytes());
            out.extend_from_slice(&*key.secret);
        }
        Zeroizing::new(out)
    }
    fn decode(b: &[u8]) -> Option<Contents> {
        let (newest, rest) = b.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let (entries, over) = rest.as_chunks::<ENTRY>();
        if !over.is_empty() || entries.len() != u32::from_le_bytes(*count) as usize {
            return None;
        }
        let word = |entry: &[u8; ENTRY], at: usize| entry[at..].first_chunk().map(|b| u64::from_le_bytes(*b));
        let key = |entry: &[u8; ENTRY]| {
            let mut secret = Zeroizing::new([0; 32]);
            secret.copy_from_slice(&entry[16..]);
            Some(DataKey { id: word(entry, 0)?, made_ms: word(entry, 8)?, secret })
        };
        let keys = entries.iter().map(key).collect::<Option<Vec<_>>>()?;
        Some(Contents { newest: u64::from_le_bytes(*newest), keys })
    }
}

fn encode(id: &str, master: &MasterKey, contents: &Contents, rng: &dyn Rng) -> Result<Vec<u8>> {
    let len =
        u16::try_from(id.len()).map_err(|_| Error::bad_value("the name of a master key is too long"))?;
    let mut salt = [0; SALT];
    rng.fill(&mut salt);
    let mut out = Vec::from(&MAGIC[..]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(&salt);
    let mut plain = contents.encode();
    let key = derived(master.bytes(), &salt, INFO);
    let tag = key.seal_in_place_separate_tag(zero(), Aad::from(&out[..]), &mut plain);
    let tag = tag.map_err(|_| Error::internal("the key store cannot be sealed"))?;
    out.extend_from_slice(&plain);
    out.extend_from_slice(tag.as_ref());
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    plain.zeroize();
    Ok(out)
}

fn save(disk: &dyn Disk, id: &str, master: &MasterKey, contents: &Contents, rng: &dyn Rng) -> Result<()> {
    let bytes = encode(id, master, contents, rng)?;
    make_folder(disk, DIR)?;
    let file = disk.open(NEW_PATH, true)?;
    file.truncate(0)?;
    file.write_at(0, &bytes)?;
    file.sync()?;
    disk.rename(NEW_PATH, PATH)?;
    Ok(disk.sync_dir(DIR)?)
}
