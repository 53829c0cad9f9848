func.func @scalars(%x: i16) -> index {
  %0 = arith.index_castui %x : i16 to index
  %1 = arith.index_castui %x : i16 to index
  return %1 : index
}

func.func @lanes(%x: vector<5xi16>) -> vector<5xindex> {
  %0 = arith.index_castui %x {tag = 3 : i64} : vector<5xi16> to vector<5xindex>
  return %0 : vector<5xindex>
}
