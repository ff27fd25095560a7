//! The book is consistent: each page is in the table of contents, links have targets, and pictures exist and are used.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::markdown::{Link, anchors, code_spans, html_links, links};
use crate::{all_pages, files_below, name, pages, root};

/// The target file and anchor of a link on `page`.
fn followed(page: &Path, target: &str) -> (PathBuf, Option<String>) {
    let (file, place) = match target.split_once('#') {
        Some((file, place)) => (file, Some(place.to_owned())),
        None => (target, None),
    };
    if file.is_empty() { (page.to_owned(), place) } else { (page.parent().unwrap().join(file), place) }
}

/// The links and pictures of a page that do not lead to other hosts.
fn own_links(page: &Path) -> Vec<Link> {
    let text = fs::read_to_string(page).unwrap();
    let mut found = links(&text);
    found.append(&mut html_links(&text));
    found.retain(|link| !link.target.starts_with("https://") && !link.target.starts_with("http://"));
    found
}

#[test]
fn every_page_has_one_place_in_the_table_of_contents() {
    let summary = root().join("docs/SUMMARY.md");
    let listed: Vec<PathBuf> = links(&fs::read_to_string(&summary).unwrap())
        .iter()
        .map(|link| summary.parent().unwrap().join(&link.target))
        .collect();
    for page in pages() {
        let times = listed.iter().filter(|other| **other == page).count();
        assert_eq!(times, 1, "{} is so many times in docs/SUMMARY.md", name(&page));
    }
    // If a listed page did not exist, mdBook would create an empty one.
    for page in listed {
        assert!(page.exists(), "docs/SUMMARY.md lists {}, which is not there", page.display());
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut faults = Vec::new();
    for page in all_pages() {
        for link in own_links(&page) {
            let (file, place) = followed(&page, &link.target);
            let fault = match (fs::read_to_string(&file), place) {
                (Err(_), None) if file.exists() => continue,
                (Err(_), _) => "no such file",
                (Ok(text), Some(place)) if !anchors(&text).contains(&place) => "no such heading there",
                _ => continue,
            };
            faults.push(format!("{}:{}: {}: {fault}", name(&page), link.line, link.target));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_picture_is_shown_and_told_in_words() {
    let mut shown: BTreeMap<PathBuf, String> = BTreeMap::new();
    for page in all_pages() {
        for link in own_links(&page) {
            if link.is_picture {
                let at = format!("{}:{}", name(&page), link.line);
                assert!(link.text.split(' ').count() >= 5, "{at}: describe the picture in words");
                shown.insert(followed(&page, &link.target).0.canonicalize().unwrap(), at);
            }
        }
    }
    let has = |path: &Path, ending: &str| path.extension().is_some_and(|it| it == ending);
    let is_picture = |path: &PathBuf| ["svg", "png", "webp"].iter().any(|ending| has(path, ending));
    for picture in files_below(&root().join("docs")).into_iter().filter(is_picture) {
        assert!(shown.contains_key(&picture), "no page shows {}", name(&picture));
        assert!(fs::metadata(&picture).unwrap().len() <= 1_000_000, "{} is larger than 1 MB", name(&picture));
        // Pictures are shown on light and dark pages. Bitmaps have a form for each.
        if !has(&picture, "svg") {
            let other = picture.to_str().unwrap().replace("-light.", "-dark.");
            assert!(
                Path::new(&other) != picture || other.contains("-dark."),
                "{} has no -dark form",
                name(&picture)
            );
            assert!(shown.contains_key(Path::new(&other)), "no page shows {other}");
            continue;
        }
        // Vectors need both colour schemes and an opaque background.
        let text = fs::read_to_string(&picture).unwrap();
        for needed in ["prefers-color-scheme: dark", "<title>", "class=\"ground\""] {
            assert!(text.contains(needed), "{} has no {needed}", name(&picture));
        }
    }
}

#[test]
fn every_file_that_is_named_is_there() {
    let mut named = 0;
    let mut faults = Vec::new();
    for page in all_pages() {
        for (line, code) in code_spans(&fs::read_to_string(&page).unwrap()) {
            let is_path = ["crates/", "docs/", "figures/", "scenarios/", "packaging/", "contrib/", "bench/"]
                .iter()
                .any(|room| code.starts_with(room));
            if !is_path || code.contains([' ', '…']) || code.contains("NAME") {
                continue;
            }
            named += 1;
            // For a pattern, check its directory.
            let place = code.split('*').next().unwrap();
            let place = if code.contains('*') { place.rsplit_once('/').unwrap().0 } else { place };
            if !root().join(place).exists() {
                faults.push(format!("{}:{line}: {code}", name(&page)));
            }
        }
    }
    assert!(named > 50, "only {named} were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
