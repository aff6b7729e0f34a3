//! Combinations of factors: all of them, or few that have every pair of values.

/// Every combination.
pub(crate) fn product(factors: &[usize]) -> Vec<Vec<usize>> {
    factors.iter().fold(vec![Vec::new()], |rows, &values| {
        rows.iter().flat_map(|row| (0..values).map(|value| [row.as_slice(), &[value]].concat())).collect()
    })
}

/// Rows in which every two factors have every pair of their values, made greedily: each row starts with a pair that is missing and takes, factor
/// by factor, the value that adds most.
pub(crate) fn rows(factors: &[usize]) -> Vec<Vec<usize>> {
    let mut missing = pairs(factors);
    let mut rows = Vec::new();
    while let Some(&((first, one), (second, two))) = missing.first() {
        let mut row: Vec<Option<usize>> = vec![None; factors.len()];
        (row[first], row[second]) = (Some(one), Some(two));
        for factor in 0..factors.len() {
            if row[factor].is_none() {
                let gain = |value: &usize| {
                    let mut tried = row.clone();
                    tried[factor] = Some(*value);
                    missing.iter().filter(|pair| has(&tried, pair)).count()
                };
                // Of equally good values each row starts with another; the rows are always the same.
                let values = (0..factors[factor]).map(|value| (value + rows.len()) % factors[factor]);
                row[factor] = values.max_by_key(gain);
            }
        }
        missing.retain(|pair| !has(&row, pair));
        rows.push(row.into_iter().flatten().collect());
    }
    rows
}

/// Two factors, each with a value.
type Pair = ((usize, usize), (usize, usize));

fn has(row: &[Option<usize>], &((first, one), (second, two)): &Pair) -> bool {
    row[first] == Some(one) && row[second] == Some(two)
}

fn pairs(factors: &[usize]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for first in 0..factors.len() {
        for second in first + 1..factors.len() {
            for one in 0..factors[first] {
                pairs.extend((0..factors[second]).map(|two| ((first, one), (second, two))));
            }
        }
    }
    pairs
}

#[test]
fn rows_have_every_pair_and_are_few() {
    let factors = [9, 4, 3, 2, 2, 2];
    let rows = rows(&factors);
    for ((first, one), (second, two)) in pairs(&factors) {
        assert!(rows.iter().any(|row| row[first] == one && row[second] == two));
    }
    assert!(rows.len() <= 40, "{} rows", rows.len());
    assert_eq!(product(&factors).len(), 9 * 4 * 3 * 2 * 2 * 2);
}
