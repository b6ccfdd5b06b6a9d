//! Cases of `recursive_depth.gidl`, `recursive_types.gidl` and the recursive ones of
//! `empty_struct.gidl` and `conformance.gidl`. Of `recursive_depth.gidl`, these are the cases of
//! structs, arrays, unions and tables.

use esatto_fidl::Reason;
use esatto_fidl_tests::test_conformance::*;

use crate::support::{decode_failure, encode_failure, success};

/// Returns a chain with that many links after the first one.
fn chain(links: usize) -> Chain {
    (0..links).fold(Chain::new(None), |chain, _| Chain::new(Some(Box::new(chain))))
}

#[test]
fn messages_have_at_most_32_levels() {
    success("RecursiveOptionalStructUnderLimit", &chain(32), "ff*256 00*8");
    encode_failure("RecursiveOptionalStructExceedLimit", &chain(33), Reason::TooDeep);
    decode_failure::<Chain>("RecursiveOptionalStructExceedLimit", "ff*264 00*8", Reason::TooDeep);
    success("RecursiveOptionalStructArrayWrapperUnderLimit", &ChainArray::new([chain(32)]), "ff*256 00*8");
    let name = "RecursiveOptionalStructArrayWrapperExceedLimit";
    encode_failure(name, &ChainArray::new([chain(33)]), Reason::TooDeep);
    decode_failure::<ChainArray>(name, "ff*264 00*8", Reason::TooDeep);
    let text = "1:8 256:8 ff*248 00*8";
    success("RecursiveOptionalAndUnionUnderLimit", &ChainUnion::Chain(chain(31)), text);
    let name = "RecursiveOptionalAndUnionExceedLimit";
    encode_failure(name, &ChainUnion::Chain(chain(32)), Reason::TooDeep);
    decode_failure::<ChainUnion>(name, "1:8 264:8 ff*256 00*8", Reason::TooDeep);
    let value = |links| ChainTable { chain: Some(chain(links)) };
    let text = "1:8 ff*8 248:8 ff*240 00*8";
    success("RecursiveOptionalAndTableUnderLimit", &value(30), text);
    let name = "RecursiveOptionalAndTableExceedLimit";
    encode_failure(name, &value(31), Reason::TooDeep);
    decode_failure::<ChainTable>(name, "1:8 ff*8 256:8 ff*248 00*8", Reason::TooDeep);
}

#[test]
fn types_contain_themselves() {
    success("RecursiveEmptyStruct", &chain(1), "ff*8 00*8");
    success("RecursiveEmptyStructArrayWrapper", &ChainArray::new([chain(1)]), "ff*8 00*8");
    success("RecursiveEmptyStructVectorWrapper", &ChainVector::new(vec![chain(0)]), "1:8 ff*8 00*8");
    success("RecursiveOptionalStruct", &chain(2), "ff*16 00*8");
    let tree = VectorTree::new(vec![VectorTree::new(vec![VectorTree::new(Vec::new())])]);
    success("RecursiveVectorStruct", &tree, "1:8 ff*8 1:8 ff*8 0:8 ff*8");
    let end = || StructOfUnion::new(None);
    let around = |inner| StructOfUnion::new(Some(Box::new(UnionOfStruct::S(inner))));
    success("RecursiveUnionStruct", &around(around(end())), "1:8 32:8 1:8 16:8 0:16");
    success("MutualRecursionUnionStruct", &around(around(end())), "1:8 32:8 1:8 16:8 0:16");
    let union = UnionOfVector::V(vec![UnionOfVector::V(Vec::new())]);
    success("RecursiveVectorUnionStruct", &union, "1:8 48:8 1:8 ff*8 1:8 16:8 0:8 ff*8");
    let link = |inner: Option<TableLink>| TableLink::new(LinkTable { s: Some(TableLinkBox::new(inner.map(Box::new))) });
    let text = "1:8 ff*8 72:8 ff*8 1:8 ff*8 40:8 ff*8 1:8 ff*8 8:8 00*8";
    success("RecursiveTableStruct", &link(Some(link(Some(link(None))))), text);
}
