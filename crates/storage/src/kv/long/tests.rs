use super::*;
use crate::kv::mem::MemKv;
use crate::testing::{FaultyDisk, SeededRng};
use pando_env::Rng;

const CUT: KeyCut = KeyCut { plain: 12, step: 5 };

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys of few letters, many of which begin alike; a third are short.
fn key(rng: &SeededRng, tree: Tree) -> Vec<u8> {
    let mut key = (33 + 2 * rng.below(3) as u32).to_be_bytes().to_vec();
    let long = if rng.below(3) == 0 { 8 } else { 30 };
    for _ in 0..rng.below(long) {
        key.push([0, 1, 0xff][rng.below(3).min(rng.below(3)) as usize]);
    }
    if tree == Tree::History {
        key.extend_from_slice(&rng.below(3).to_be_bytes());
    }
    key
}

fn value(rng: &SeededRng) -> Vec<u8> {
    row::stamped_value(1 + rng.below(9), &rng.next_u64().to_be_bytes()).to_vec()
}

fn write(kv: &dyn Kv, tree: Tree, rng: &SeededRng, model: &mut Model) {
    let mut rows: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
    for _ in 0..rng.below(25) {
        let known = model.keys().nth(rng.below(1 + model.len() as u64) as usize);
        match known {
            Some(k) if rng.below(3) == 0 => rows.insert(k.clone(), None),
            _ => rows.insert(key(rng, tree), (rng.below(5) > 0).then(|| value(rng))),
        };
    }
    let mut run = rows.iter().map(|(k, v)| Ok((Slice::from(&k[..]), v.as_deref().map(Slice::from))));
    kv.write_run(tree, &mut run).unwrap();
    for (k, v) in rows {
        match v {
            Some(v) => model.insert(k, v),
            None => model.remove(&k),
        };
    }
}

fn load(kv: &dyn Kv, tree: Tree, rng: &SeededRng, model: &mut Model) {
    let rows: Model = (0..rng.below(20)).map(|_| (key(rng, tree), value(rng))).collect();
    let mut load = kv.bulk(tree).unwrap();
    rows.iter().for_each(|(k, v)| load.push(Slice::from(&k[..]), Slice::from(&v[..])).unwrap());
    load.finish().unwrap();
    model.extend(rows);
}

fn bound(rng: &SeededRng, tree: Tree) -> Bound<Vec<u8>> {
    let mut key = key(rng, tree);
    match rng.below(5) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key),
        2 => {
            key.truncate(4);
            Bound::Included(key)
        }
        _ => Bound::Included(key),
    }
}

fn compare(kv: &dyn Kv, tree: Tree, rng: &SeededRng, model: &Model, what: &str) {
    for _ in 0..10 {
        let key = key(rng, tree);
        let got = kv.get(tree, &key).unwrap().map(|v| v.to_vec());
        assert_eq!(got.as_ref(), model.get(&key), "{what}: {key:?}");
    }
    for _ in 0..10 {
        let (lower, upper) = (bound(rng, tree), bound(rng, tree));
        let (low, high) = (lower.as_ref().map(|k| &k[..]), upper.as_ref().map(|k| &k[..]));
        if crate::writes::empty_range(low, high) {
            continue;
        }
        let backward = rng.below(2) == 0;
        let mut expected: Vec<_> = model.range::<[u8], _>((low, high)).collect();
        if backward {
            expected.reverse();
        }
        let mut walk = kv.range(tree, low, high, backward);
        for (k, v) in expected {
            assert!(
                walk.step().unwrap(),
                "{what}: {low:?} to {high:?}, backward {backward}: {k:?} is missing"
            );
            assert_eq!(
                (walk.key(), walk.value()),
                (&k[..], &v[..]),
                "{what}: {low:?} to {high:?}, {backward}"
            );
            assert_eq!(*walk.share(), v[..]);
        }
        assert!(!walk.step().unwrap() && !walk.step().unwrap(), "{what}: the end stays the end");
    }
}

#[test]
fn any_mixture_of_keys_agrees_with_an_ordered_map() {
    for seed in 1..120 {
        let tree = if seed % 3 == 0 { Tree::History } else { Tree::Indexes };
        let rng = SeededRng::new(seed);
        let mem = MemKv::open(Arc::new(FaultyDisk::new(seed)), None).unwrap();
        let mut kv = LongKeys::new(mem.clone(), CUT).unwrap();
        let mut model = Model::new();
        for step in 0..40 {
            let what = format!("seed {seed}, step {step}");
            match rng.below(12) {
                0 => kv = LongKeys::new(mem.clone(), CUT).unwrap(),
                1 => kv.0.collect(tree).unwrap(),
                2 => load(&kv, tree, &rng, &mut model),
                _ => write(&kv, tree, &rng, &mut model),
            }
            compare(&kv, tree, &rng, &model, &what);
        }
        // All goes, and with it every part.
        let mut rows = model.keys().map(|k| Ok((Slice::from(&k[..]), None)));
        kv.write_run(tree, &mut rows).unwrap();
        kv.0.collect(tree).unwrap();
        assert_eq!(
            mem.range(tree, Bound::Unbounded, Bound::Unbounded, false).count(),
            1,
            "the counter alone"
        );
    }
}

#[test]
fn a_walk_without_long_keys_is_that_of_the_tables() {
    let mem = MemKv::open(Arc::new(FaultyDisk::new(1)), None).unwrap();
    let kv = LongKeys::new(mem, CUT).unwrap();
    let row = |k: &[u8]| Ok((Slice::from(k), Some(row::stamped_value(1, b"v"))));
    kv.write_run(Tree::Indexes, &mut [row(&[0, 0, 0, 33, 1])].into_iter()).unwrap();
    assert!(!kv.has_long_keys());
    assert_eq!(kv.get(Tree::Indexes, &[&[0, 0, 0, 33][..], &[1; 20]].concat()).unwrap(), None);
    kv.write_run(Tree::Indexes, &mut [row(&[&[0, 0, 0, 35][..], &[1; 20]].concat())].into_iter()).unwrap();
    assert!(
        kv.has_long_keys()
            && kv.has_rows(Tree::Indexes, 35).unwrap()
            && !kv.has_rows(Tree::Indexes, 37).unwrap()
    );
}
