"""Plans under uncertainty: scenarios are drawn, a program chooses what to buy before it is known which one comes."""
