"""What clusters cost: published examples, a regression case, and the functions of money by hand numbers."""
