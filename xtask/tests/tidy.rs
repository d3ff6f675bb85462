//! The tree is tidy: layers, tours, systems table, links, sizes, the fence around the outside world.

#[test]
fn the_tree_is_tidy() {
    let problems = xtask::tidy::run(&xtask::tree::Tree::load());
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
